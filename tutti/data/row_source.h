// Arrays whose rows are read by their numbers, in any order, from where they are kept: what is trained by may be larger than memory.
#pragma once

#include <memory>

#include "tutti/data/npy.h"

namespace tutti {

class RowSource {
 public:
  virtual ~RowSource() = default;
  const Type& type() const { return type_; }  // of the whole array: [rows, ...]
  // Rows of these numbers, one behind another. Safe from many threads. Throws InvalidArgument when they cannot be read.
  virtual void read(std::span<const int64_t> rows, std::span<std::byte> to) const = 0;
  virtual bool waits() const { return true; }  // for files; else rows are in memory

 protected:
  explicit RowSource(Type type) : type_(std::move(type)) {}
  size_t row_bytes() const { return type_.shape[0] == 0 ? 0 : static_cast<size_t>(type_.bytes() / type_.shape[0]); }
  Type type_;
};

// Of an .npy array, as rows of another dtype or shape of as many elements.
std::shared_ptr<const RowSource> npy_rows(NpyReader array, DType dtype, const Shape& row);

// Who says what may stay in memory, and where the rest goes.
class RowMemory {
 public:
  virtual ~RowMemory() = default;
  virtual bool hold(int64_t bytes) = 0;  // whether so many more may be held; then they are
  virtual void give_back(int64_t bytes) = 0;
  virtual const std::string& folder() const = 0;  // for files without a name
};

// An array whose rows come one after another, nobody knows how many. It is in memory, or, when that becomes too much, in a file.
class RowCollector {
 public:
  RowCollector(Type row, RowMemory& memory) : row_(std::move(row)), memory_(memory), row_bytes_(static_cast<size_t>(row_.bytes())) {}
  std::span<std::byte> next();  // the next row, to be written before the next call
  // [rows, ...]: one of both.
  struct Rows {
    Tensor held;
    std::shared_ptr<const RowSource> stored;
  };
  Rows finish();

 private:
  void end_block();
  Type row_;
  RowMemory& memory_;
  size_t row_bytes_;
  int64_t rows_ = 0, held_ = 0;                 // bytes of blocks_ but the last
  std::vector<std::vector<std::byte>> blocks_;  // of whole rows
  std::unique_ptr<ScratchFile> file_;
};

// All of it in memory.
Tensor all_rows(const RowSource& source);

}  // namespace tutti
