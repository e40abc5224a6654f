// The fractal heap: a linear space of objects, cut into blocks that double in size row by row.
#include <bit>

#include "tutti/keras/hdf5/btree.h"
#include "tutti/keras/hdf5/checksum.h"
#include "tutti/keras/hdf5/heaps.h"

namespace tutti::keras::hdf5 {

namespace {
uint64_t log2(uint64_t power) { return static_cast<uint64_t>(std::bit_width(power)) - 1; }
}  // namespace

FractalHeap::FractalHeap(Storage& storage, uint64_t address) : storage_(storage) {
  const size_t offset = storage.offset_width(), length = storage.length_width();
  auto bytes = storage.read(address, 22 + 12 * length + 3 * offset + 4, "a fractal heap");
  Fields fields(bytes, storage, "a fractal heap");
  fields.expect("FRHP");
  fields.expect_version(0);
  id_bytes_ = fields.u16();
  uint16_t filter_bytes = fields.u16();
  checksums_ = fields.u8() & 2;
  uint64_t max_managed = fields.u32();
  fields.length();  // next huge key
  huge_tree_ = fields.offset();
  fields.length();          // free space
  fields.offset();          // its manager
  fields.skip(8 * length);  // sizes and counts
  width_ = fields.u16();
  start_bytes_ = fields.length();
  max_direct_bytes_ = fields.length();
  uint16_t heap_bits = fields.u16();
  fields.u16();  // rows at the start
  root_ = fields.offset();
  root_rows_ = fields.u16();
  if (filter_bytes != 0) unsupported("a fractal heap with filters");
  storage.read_checked(address, fields.position() + 4, "a fractal heap");
  if (!std::has_single_bit(width_) || !std::has_single_bit(start_bytes_) || !std::has_single_bit(max_direct_bytes_) ||
      start_bytes_ > max_direct_bytes_ || heap_bits == 0 || heap_bits > 64 || max_direct_bytes_ > uint64_t{1} << 32 || root_rows_ > 64)
    corrupt("a fractal heap {} blocks wide of {} to {} bytes, {} bits, {} rows", width_, start_bytes_, max_direct_bytes_, heap_bits,
            root_rows_);
  offset_bytes_ = (heap_bits + 7u) / 8;
  size_bytes_ = std::min<size_t>((log2(max_direct_bytes_) + 7) / 8, (static_cast<size_t>(std::bit_width(max_managed | 1)) + 7) / 8);
}

std::vector<std::byte> FractalHeap::object(std::span<const std::byte> id) {
  Fields fields(id, storage_, "a fractal heap ID");
  uint8_t head = fields.u8();
  if (head >> 6 != 0) unsupported("a fractal heap ID of version {}", head >> 6);
  switch (head >> 4 & 3) {
    case 0: {
      uint64_t offset = fields.number(offset_bytes_);
      return managed(offset, fields.number(size_bytes_));
    }
    case 1: {
      Range where = huge(id.subspan(1));
      return storage_.read(where.address, where.size, "a huge object");
    }
    case 2: {
      uint64_t size = head & 15;
      if (id.size() > 18) size = size << 8 | fields.u8();
      auto bytes = fields.take(size + 1);
      return {bytes.begin(), bytes.end()};
    }
    default: corrupt("a fractal heap ID of type 3");
  }
}

// Finds the block of the doubling table that holds `offset`: rows 0 and 1 have blocks of the starting size, each row after them of twice
// the size before; blocks too large to be direct are tables themselves.
std::vector<std::byte> FractalHeap::managed(uint64_t offset, uint64_t size) {
  uint64_t address = root_, block_bytes = start_bytes_, rows = root_rows_;
  while (rows > 0) {
    uint64_t row = 0, first_row = width_ * start_bytes_, row_offset = 0;
    if (offset >= first_row) {
      row = log2(offset) - log2(first_row) + 1;
      row_offset = first_row << (row - 1);
    }
    if (row >= rows) corrupt("offset {} lies outside of a fractal heap", offset);
    block_bytes = row_bytes(row);
    uint64_t column = (offset - row_offset) / block_bytes;
    offset = (offset - row_offset) % block_bytes;
    Fields table(indirect_block(address, rows), storage_, "a fractal heap table");
    table.skip(5 + storage_.offset_width() + offset_bytes_ + (row * width_ + column) * storage_.offset_width());
    address = table.offset();
    if (block_bytes <= max_direct_bytes_) break;
    if (block_bytes < first_row) corrupt("a fractal heap table of {} bytes holds rows of {}", block_bytes, first_row);
    rows = log2(block_bytes) - log2(first_row) + 1;
  }
  if (address == undefined) corrupt("a fractal heap object in a block that is not there");
  const auto& block = direct_block(address, block_bytes);
  if (offset > block.size() || size > block.size() - offset) corrupt("a fractal heap object reaches beyond its block");
  storage_.charge_metadata(size);
  auto first = block.begin() + static_cast<std::ptrdiff_t>(offset);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

const std::vector<std::byte>& FractalHeap::direct_block(uint64_t address, uint64_t size) {
  auto [at, added] = blocks_.try_emplace(address);
  auto& block = at->second;
  if (!added) {
    if (block.size() != size) corrupt("the fractal heap block at {} is used in two ways", address);
    return block;
  }
  block = storage_.read(address, size, "a fractal heap block");
  Fields fields(block, storage_, "a fractal heap block");
  fields.expect("FHDB");
  fields.expect_version(0);
  fields.offset();  // the heap
  fields.skip(offset_bytes_);
  if (checksums_) {
    // The checksum lies inside of what it sums, as if it were zero.
    size_t place = fields.position();
    uint32_t stored = fields.u32();
    auto cleared = block;
    std::fill_n(cleared.begin() + static_cast<std::ptrdiff_t>(place), 4, std::byte{0});
    if (!checksums_agree(stored, lookup3(cleared))) corrupt("the checksum of a fractal heap block is wrong");
  }
  return block;
}

const std::vector<std::byte>& FractalHeap::indirect_block(uint64_t address, uint64_t rows) {
  uint64_t size = 5 + storage_.offset_width() + offset_bytes_ + rows * width_ * storage_.offset_width() + 4;
  auto [at, added] = blocks_.try_emplace(address);
  auto& block = at->second;
  if (!added) {
    if (block.size() != size) corrupt("the fractal heap block at {} is used in two ways", address);
    return block;
  }
  block = storage_.read_checked(address, size, "a fractal heap table");
  Fields fields(block, storage_, "a fractal heap table");
  fields.expect("FHIB");
  fields.expect_version(0);
  return block;
}

// Objects too large for the blocks: their place is in the ID, or in a B-tree under the ID's key.
FractalHeap::Range FractalHeap::huge(std::span<const std::byte> id) {
  Fields fields(id, storage_, "a fractal heap ID");
  if (storage_.offset_width() + storage_.length_width() <= id.size()) {
    uint64_t address = fields.offset();
    return {address, fields.length()};
  }
  uint64_t key = fields.number(std::min<size_t>(id.size(), 8));
  if (!huge_read_) {
    if (huge_tree_ == undefined) corrupt("a huge object without a B-tree");
    walk_tree_2(storage_, huge_tree_, Tree2::huge_object, [&](std::span<const std::byte> record) {
      Fields row(record, storage_, "a huge object's record");
      uint64_t address = row.offset(), size = row.length();
      huge_objects_[row.length()] = {address, size};
    });
    huge_read_ = true;
  }
  auto found = huge_objects_.find(key);
  if (found == huge_objects_.end()) corrupt("no huge object with the key {}", key);
  return found->second;
}

}  // namespace tutti::keras::hdf5
