#include "tutti/device/reference/strided_copy.h"

#include <cstdint>
#include <cstring>

namespace tutti::reference {

namespace {

template <class T>
void copy_row(const std::byte* from, std::byte* to, int64_t count, int64_t from_step, int64_t to_step) {
  for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) {
    T element;
    std::memcpy(&element, from, sizeof(T));
    std::memcpy(to, &element, sizeof(T));
  }
}

}  // namespace

StridedCopy::StridedCopy(int64_t element_bytes, const Ints& extents, const Ints& from_strides, const Ints& to_strides)
    : element_bytes_(element_bytes) {
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0) empty_ = true;
    if (extents[i] == 1) continue;
    Axis axis{extents[i], from_strides[i] * element_bytes, to_strides[i] * element_bytes};
    if (!axes_.empty() && !empty_ && axes_.back().from == axis.from * axis.extent && axes_.back().to == axis.to * axis.extent) {
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
  const bool contiguous = row.from == element_bytes_ && row.to == element_bytes_;
  position_.assign(axes_.size(), 0);
  while (true) {
    if (contiguous) {
      std::memcpy(to, from, static_cast<size_t>(row.extent * element_bytes_));
    } else if (element_bytes_ == 1) {
      copy_row<uint8_t>(from, to, row.extent, row.from, row.to);
    } else if (element_bytes_ == 2) {
      copy_row<uint16_t>(from, to, row.extent, row.from, row.to);
    } else if (element_bytes_ == 4) {
      copy_row<uint32_t>(from, to, row.extent, row.from, row.to);
    } else {
      copy_row<uint64_t>(from, to, row.extent, row.from, row.to);
    }
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
