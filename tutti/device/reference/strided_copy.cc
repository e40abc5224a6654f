#include "tutti/device/reference/strided_copy.h"

#include <cstdint>
#include <cstring>

namespace tutti::reference {

namespace {

template <class T>
void copy_row(const std::byte* from, std::byte* to, int64_t count, int64_t from_step, int64_t to_step) {
  if (from_step == sizeof(T) && to_step == sizeof(T)) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) {
    T element;
    std::memcpy(&element, from, sizeof(T));
    std::memcpy(to, &element, sizeof(T));
  }
}

StridedCopy::Row copy_row_of(int64_t element_bytes) {
  switch (element_bytes) {
    case 1: return copy_row<uint8_t>;
    case 2: return copy_row<uint16_t>;
    case 4: return copy_row<uint32_t>;
    default: return copy_row<uint64_t>;
  }
}

}  // namespace

StridedCopy::StridedCopy(int64_t element_bytes, const Ints& extents, const Ints& from_strides, const Ints& to_strides, Row row)
    : row_(row != nullptr ? row : copy_row_of(element_bytes)) {
  for (int64_t extent : extents) empty_ |= extent == 0;
  for (size_t i = 0; i < extents.size() && !empty_; ++i) {
    if (extents[i] == 1) continue;
    Axis axis{extents[i], from_strides[i] * element_bytes, to_strides[i] * element_bytes};
    if (!axes_.empty() && axes_.back().from == axis.from * axis.extent && axes_.back().to == axis.to * axis.extent) {
      axis.extent *= axes_.back().extent;
      axes_.back() = axis;
    } else {
      axes_.push_back(axis);
    }
  }
  if (axes_.empty()) axes_.push_back({1, element_bytes, element_bytes});
  position_.resize(axes_.size());
}

void StridedCopy::operator()(const std::byte* from, std::byte* to) const {
  if (empty_) return;
  const Axis& row = axes_.back();
  position_.assign(axes_.size(), 0);
  while (true) {
    row_(from, to, row.extent, row.from, row.to);
    size_t axis = axes_.size() - 1;
    while (true) {
      if (axis == 0) return;
      const Axis& a = axes_[--axis];
      from += a.from;
      to += a.to;
      if (++position_[axis] < a.extent) break;
      from -= a.from * a.extent;
      to -= a.to * a.extent;
      position_[axis] = 0;
    }
  }
}

}  // namespace tutti::reference
