#include "tutti/keras/hdf5/chunk_index.h"

#include <algorithm>
#include <optional>

#include "tutti/keras/hdf5/btree.h"

namespace tutti::keras::hdf5 {

namespace {

uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

class IndexReader {
 public:
  IndexReader(Storage& storage, const Dataset& dataset, const ChunkGrid& grid)
      : storage_(storage), layout_(dataset.layout), grid_(grid), filtered_(!dataset.filters.empty()) {}

  std::vector<Chunk> read() {
    switch (layout_.index) {
      case Layout::Index::tree_1: tree_1(); break;
      case Layout::Index::single: single(); break;
      case Layout::Index::implicit: implicit(); break;
      case Layout::Index::fixed_array: walk_fixed_array(storage_, layout_.address, filtered_, array_element(natural_axes())); break;
      case Layout::Index::extensible_array:
        walk_extensible_array(storage_, layout_.address, filtered_, array_element(growing_axes()));
        break;
      case Layout::Index::tree_2: tree_2(); break;
    }
    std::sort(chunks_.begin(), chunks_.end(), [](const Chunk& a, const Chunk& b) { return a.cell < b.cell; });
    auto twice = std::adjacent_find(chunks_.begin(), chunks_.end(), [](const Chunk& a, const Chunk& b) { return a.cell == b.cell; });
    if (twice != chunks_.end()) corrupt("chunk {} is stored twice", twice->cell);
    return std::move(chunks_);
  }

 private:
  size_t rank() const { return grid_.counts.size(); }

  // A chunk outside of the grid is left from when the data set was larger.
  void add(const std::vector<uint64_t>& place, uint64_t address, uint64_t size, uint32_t skipped) {
    uint64_t cell = 0;
    for (size_t axis = 0; axis < rank(); ++axis) {
      if (place[axis] >= grid_.counts[axis]) return;
      cell = cell * grid_.counts[axis] + place[axis];
    }
    if (address == undefined) return;
    storage_.charge_metadata(256);  // reading a chunk takes time however small it is
    chunks_.push_back({cell, address, size, skipped});
  }

  // Key: stored size, filter mask, first element along each axis, and a zero for the axis of bytes.
  void tree_1() {
    walk_tree_1(storage_, layout_.address, Tree1::chunk, 8 + 8 * (rank() + 1), [&](std::span<const std::byte> bytes, uint64_t child) {
      Fields key(bytes, storage_, "a chunk's key");
      uint32_t size = key.u32(), skipped = key.u32();
      std::vector<uint64_t> place;
      for (size_t axis = 0; axis < rank(); ++axis) {
        uint64_t first = key.u64();
        if (first % layout_.chunk_extents[axis] != 0)
          corrupt("a chunk begins at {}, not a multiple of {}", first, layout_.chunk_extents[axis]);
        place.push_back(first / layout_.chunk_extents[axis]);
      }
      add(place, child, size, skipped);
    });
  }

  void tree_2() {
    walk_tree_2(storage_, layout_.address, filtered_ ? Tree2::filtered_chunk : Tree2::chunk, [&](std::span<const std::byte> bytes) {
      Fields record(bytes, storage_, "a chunk's record");
      const size_t place_bytes = 8 * rank();
      if (bytes.size() < place_bytes) corrupt("a chunk's record of {} bytes", bytes.size());
      Chunk chunk = stored(record, bytes.size() - place_bytes);
      std::vector<uint64_t> place;
      for (size_t axis = 0; axis < rank(); ++axis) place.push_back(record.u64());
      add(place, chunk.address, chunk.size, chunk.skipped_filters);
    });
  }

  // Address, and with filters size (of as many bytes as are left) and mask.
  Chunk stored(Fields& fields, size_t bytes) {
    Chunk out;
    out.address = fields.offset();
    out.size = grid_.chunk_bytes;
    if (filtered_) {
      if (bytes < storage_.offset_width() + 5 || bytes > storage_.offset_width() + 12) corrupt("a chunk's record of {} bytes", bytes);
      out.size = fields.number(bytes - storage_.offset_width() - 4);
      out.skipped_filters = fields.u32();
    }
    return out;
  }

  void single() {
    if (grid_.cells != 1) corrupt("a single chunk for {} places", grid_.cells);
    add(std::vector<uint64_t>(rank(), 0), layout_.address, filtered_ ? layout_.single_size : grid_.chunk_bytes, layout_.single_mask);
  }

  // All chunks of the largest data set one after the other.
  void implicit() {
    std::vector<uint64_t> place(rank(), 0);
    for (uint64_t cell = 0; cell < grid_.cells; ++cell) {
      uint64_t index = 0, rest = cell;
      for (size_t axis = rank(); axis-- > 0; rest /= grid_.counts[axis]) place[axis] = rest % grid_.counts[axis];
      for (size_t axis = 0; axis < rank(); ++axis) index = product(index, axis == 0 ? 1 : max_count(axis)) + place[axis];
      uint64_t offset = product(index, grid_.chunk_bytes);
      storage_.check_range(layout_.address, offset, "data");
      add(place, layout_.address + offset, grid_.chunk_bytes, 0);
    }
  }

  uint64_t max_count(size_t axis) const {
    if (grid_.max_counts[axis] == undefined || grid_.max_counts[axis] == 0) corrupt("a chunk index that needs an axis of known length");
    return grid_.max_counts[axis];
  }

  std::vector<size_t> natural_axes() const {
    std::vector<size_t> out(rank());
    for (size_t axis = 0; axis < rank(); ++axis) out[axis] = axis;
    return out;
  }

  // The axis without limit counts slowest, so that old indexes stay true when it grows.
  std::vector<size_t> growing_axes() const {
    auto out = natural_axes();
    auto unlimited = std::find_if(out.begin(), out.end(), [&](size_t axis) { return grid_.max_counts[axis] == undefined; });
    if (unlimited != out.end()) std::rotate(out.begin(), unlimited, unlimited + 1);
    return out;
  }

  EachElement array_element(const std::vector<size_t>& axes) {
    for (size_t i = 1; i < axes.size(); ++i) max_count(axes[i]);
    return [this, axes](uint64_t index, std::span<const std::byte> bytes) {
      Fields element(bytes, storage_, "a chunk's entry");
      Chunk chunk = stored(element, bytes.size());
      std::vector<uint64_t> place(rank());
      for (size_t i = axes.size(); i-- > 1; index /= grid_.max_counts[axes[i]]) place[axes[i]] = index % grid_.max_counts[axes[i]];
      place[axes[0]] = index;
      add(place, chunk.address, chunk.size, chunk.skipped_filters);
    };
  }

  Storage& storage_;
  const Layout& layout_;
  const ChunkGrid& grid_;
  bool filtered_;
  std::vector<Chunk> chunks_;
};

}  // namespace

ChunkGrid chunk_grid(const Dataset& dataset) {
  ChunkGrid grid;
  grid.chunk_bytes = dataset.type.size;
  for (size_t axis = 0; axis < dataset.space.extents.size(); ++axis) {
    uint64_t extent = dataset.layout.chunk_extents[axis], maximum = dataset.space.maxima[axis];
    grid.counts.push_back(divide_up(dataset.space.extents[axis], extent));
    grid.max_counts.push_back(maximum == undefined ? undefined : divide_up(maximum, extent));
    grid.cells = product(grid.cells, grid.counts.back());
    grid.chunk_bytes = product(grid.chunk_bytes, extent);
  }
  return grid;
}

std::vector<Chunk> read_chunk_index(Storage& storage, const Dataset& dataset, const ChunkGrid& grid) {
  return IndexReader(storage, dataset, grid).read();
}

}  // namespace tutti::keras::hdf5
