// A block of elements moved between two strided layouts: what broadcast, transpose, slice, pad, concatenate, reverse, gather and scatter
// have in common. Strides count elements; 0 repeats, negative ones walk backwards. It runs at the speed of memory and keeps no state, so
// that several threads may use one.
#pragma once

#include <cstddef>

#include "tutti/base/shape.h"

namespace tutti::reference {

class StridedCopy {
 public:
  // What is done to a row of elements; steps in bytes.
  using Row = void (*)(const std::byte* from, std::byte* to, int64_t count, int64_t from_step, int64_t to_step);

  // Copies; or does `row` instead.
  StridedCopy(int64_t element_bytes, const Ints& extents, const Ints& from_strides, const Ints& to_strides, Row row = nullptr);
  void operator()(const std::byte* from, std::byte* to) const { piece(from, to, 0, extent()); }
  // The same for a part of the first axis, which has this extent; several threads may take a part each.
  int64_t extent() const { return empty_ ? 0 : axes_[0].extent; }
  void piece(const std::byte* from, std::byte* to, int64_t begin, int64_t end) const;

  struct Axis {
    int64_t extent, from, to;  // strides in bytes
  };
  using Plane = void (*)(const std::byte* from, std::byte* to, const Axis& rows, const Axis& row);

 private:
  bool empty_ = false;
  std::vector<Axis> axes_;  // neighbours that move as one are joined; at least one
  Row row_;
  // Where elements that are neighbours in the source are none in the target, the last two axes are a plane that is transposed in tiles.
  Plane plane_ = nullptr;
};

// to[i * to_stride + j] = from[i + j * from_stride] for i < rows, j < columns.
void transpose_floats(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to, int64_t to_stride);

}  // namespace tutti::reference
