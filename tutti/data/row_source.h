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

// All of it in memory.
Tensor all_rows(const RowSource& source);

}  // namespace tutti
