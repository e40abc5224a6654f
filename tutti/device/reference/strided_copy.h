// A block of elements moved between two strided layouts: what broadcast, transpose, slice, pad, concatenate, reverse and gather have in
// common. Strides count elements; 0 repeats, negative ones walk backwards.
#pragma once

#include <cstddef>

#include "tutti/base/shape.h"

namespace tutti::reference {

class StridedCopy {
 public:
  StridedCopy(int64_t element_bytes, const Ints& extents, const Ints& from_strides, const Ints& to_strides);
  void operator()(const std::byte* from, std::byte* to) const;

 private:
  struct Axis {
    int64_t extent, from, to;  // strides in bytes
  };
  int64_t element_bytes_;
  bool empty_ = false;
  std::vector<Axis> axes_;  // neighbours that move as one are joined; at least one
  mutable std::vector<int64_t> position_;
};

}  // namespace tutti::reference
