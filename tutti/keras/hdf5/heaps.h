// Where HDF5 keeps things of varying length: the local heap (names of old groups), the global heap (variable-length strings) and the
// fractal heap (links and attributes of objects that have many).
#pragma once

#include <map>
#include <string>

#include "tutti/keras/hdf5/storage.h"

namespace tutti::keras::hdf5 {

class LocalHeap {
 public:
  LocalHeap(Storage& storage, uint64_t address);
  std::string name(uint64_t offset) const;  // up to its closing zero

 private:
  std::vector<std::byte> bytes_;
};

class GlobalHeap {
 public:
  explicit GlobalHeap(Storage& storage) : storage_(storage) {}
  // The first `size` bytes of an object of the collection at `address`. Collections stay in memory once read.
  std::string_view object(uint64_t address, uint32_t index, uint64_t size);

 private:
  struct Collection {
    std::vector<std::byte> bytes;
    std::map<uint32_t, std::span<const std::byte>> objects;
  };
  const Collection& collection(uint64_t address);
  Storage& storage_;
  std::map<uint64_t, Collection> collections_;
};

class FractalHeap {
 public:
  FractalHeap(Storage& storage, uint64_t address);
  size_t id_bytes() const { return id_bytes_; }
  std::vector<std::byte> object(std::span<const std::byte> id);

 private:
  struct Range {
    uint64_t address, size;
  };
  std::vector<std::byte> managed(uint64_t offset, uint64_t size);
  Range huge(std::span<const std::byte> id);
  const std::vector<std::byte>& direct_block(uint64_t address, uint64_t size);
  const std::vector<std::byte>& indirect_block(uint64_t address, uint64_t rows);
  uint64_t row_bytes(uint64_t row) const { return row == 0 ? start_bytes_ : start_bytes_ << (row - 1); }

  Storage& storage_;
  size_t id_bytes_ = 0, offset_bytes_ = 0, size_bytes_ = 0;
  bool checksums_ = false;
  uint64_t huge_tree_ = undefined, root_ = undefined;
  uint64_t width_ = 0, start_bytes_ = 0, max_direct_bytes_ = 0, root_rows_ = 0;
  std::map<uint64_t, std::vector<std::byte>> blocks_;  // by address
  std::map<uint64_t, Range> huge_objects_;             // by key
  bool huge_read_ = false;
};

}  // namespace tutti::keras::hdf5
