// Chunked data: each chunk is read, its filters are undone, and its rows go to their place.
#include <algorithm>
#include <cstring>

#include "tutti/keras/hdf5/chunk_index.h"

namespace tutti::keras::hdf5 {

namespace {

// One chunk's elements into the data set, without those beyond its edges.
class Placer {
 public:
  Placer(const Dataset& dataset, const ChunkGrid& grid, std::span<std::byte> out)
      : dataset_(dataset), grid_(grid), out_(out), rank_(grid.counts.size()) {
    first_.resize(rank_), used_.resize(rank_);
  }

  void begin(uint64_t cell) {
    for (size_t axis = rank_; axis-- > 0; cell /= grid_.counts[axis]) {
      uint64_t extent = dataset_.layout.chunk_extents[axis];
      first_[axis] = cell % grid_.counts[axis] * extent;
      used_[axis] = std::min(extent, dataset_.space.extents[axis] - first_[axis]);
    }
  }

  bool reaches_over_edge() const { return used_ != dataset_.layout.chunk_extents; }

  void place(std::span<const std::byte> chunk) {
    const size_t last = rank_ - 1, row_bytes = used_[last] * dataset_.type.size;
    std::vector<uint64_t> at(rank_, 0);
    while (true) {
      uint64_t from = 0, to = 0;
      for (size_t axis = 0; axis < rank_; ++axis) {
        from = from * dataset_.layout.chunk_extents[axis] + at[axis];
        to = to * dataset_.space.extents[axis] + first_[axis] + at[axis];
      }
      std::memcpy(out_.data() + to * dataset_.type.size, chunk.data() + from * dataset_.type.size, row_bytes);
      size_t axis = last;
      while (axis > 0 && ++at[axis - 1] == used_[axis - 1]) at[--axis] = 0;
      if (axis == 0) return;
    }
  }

 private:
  const Dataset& dataset_;
  const ChunkGrid& grid_;
  std::span<std::byte> out_;
  size_t rank_;
  std::vector<uint64_t> first_, used_;  // in elements along each axis
};

}  // namespace

void check_chunks(Storage& storage, const Dataset& dataset) {
  ChunkGrid grid = chunk_grid(dataset);
  // All chunks are decoded whole, and one is held a few times over.
  storage.check_data(product(grid.cells, grid.chunk_bytes));
  uint64_t peak = 0;
  if (__builtin_add_overflow(dataset.bytes(), product(3, grid.chunk_bytes), &peak)) corrupt("chunks of {} bytes", grid.chunk_bytes);
  storage.check_data(peak);
}

void read_chunks(Storage& storage, const Dataset& dataset, std::span<std::byte> out) {
  ChunkGrid grid = chunk_grid(dataset);
  Placer placer(dataset, grid, out);
  std::vector<std::byte> bytes(grid.chunk_bytes);
  uint64_t stored_bytes = 0;
  for (const Chunk& chunk : read_chunk_index(storage, dataset, grid)) {
    placer.begin(chunk.cell);
    bool filtered = !dataset.filters.empty() && !(dataset.layout.plain_edges && placer.reaches_over_edge());
    uint64_t size = filtered ? chunk.size : grid.chunk_bytes;
    storage.check_range(chunk.address, size, "a chunk");
    stored_bytes += size;
    if (stored_bytes > storage.size()) corrupt("the chunks together are larger than the file");
    if (filtered) {
      std::vector<std::byte> stored(size);
      storage.read_data(chunk.address, stored);
      undo_filters(dataset.filters, chunk.skipped_filters, std::move(stored), bytes);
    } else {
      storage.read_data(chunk.address, bytes);
    }
    placer.place(bytes);
  }
}

}  // namespace tutti::keras::hdf5
