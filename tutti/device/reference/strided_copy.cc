#include "tutti/device/reference/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::reference {

namespace {

template <class T>
void copy_row(const std::byte* from, std::byte* to, int64_t count, int64_t from_step, int64_t to_step) {
  if (from_step == sizeof(T) && to_step == sizeof(T)) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  T element;
  if (from_step == 0 && to_step == sizeof(T)) {
    std::memcpy(&element, from, sizeof(T));
    std::fill_n(reinterpret_cast<T*>(to), count, element);
    return;
  }
  for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) {
    std::memcpy(&element, from, sizeof(T));
    std::memcpy(to, &element, sizeof(T));
  }
}

using Four = uint32_t __attribute__((vector_size(16)));

// Four times four elements of four bytes; steps in bytes.
void transpose_four(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step) {
  Four a, b, c, d;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&b, from + from_step, sizeof b);
  std::memcpy(&c, from + 2 * from_step, sizeof c);
  std::memcpy(&d, from + 3 * from_step, sizeof d);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  std::memcpy(to, &a, sizeof a);
  std::memcpy(to + to_step, &b, sizeof b);
  std::memcpy(to + 2 * to_step, &c, sizeof c);
  std::memcpy(to + 3 * to_step, &d, sizeof d);
}

// The rows of the target are the columns of the source: in tiles, so that the lines of both stay in L1.
template <class T>
void transpose_plane(const std::byte* from, std::byte* to, const StridedCopy::Axis& rows, const StridedCopy::Axis& row) {
  constexpr int64_t tile = 16, bytes = sizeof(T);
  const bool by_four = bytes == 4 && row.to == bytes;
  for (int64_t r = 0; r < rows.extent; r += tile) {
    const int64_t height = std::min(tile, rows.extent - r);
    for (int64_t c = 0; c < row.extent; c += tile) {
      const int64_t width = std::min(tile, row.extent - c);
      const std::byte* source = from + r * bytes + c * row.from;
      std::byte* target = to + r * rows.to + c * row.to;
      const int64_t high = by_four ? height / 4 * 4 : 0, wide = by_four ? width / 4 * 4 : 0;
      for (int64_t j = 0; j < wide; j += 4)
        for (int64_t i = 0; i < high; i += 4)
          transpose_four(source + i * bytes + j * row.from, row.from, target + i * rows.to + j * bytes, rows.to);
      for (int64_t i = 0; i < height; ++i)
        for (int64_t j = i < high ? wide : 0; j < width; ++j)
          std::memcpy(target + i * rows.to + j * row.to, source + i * bytes + j * row.from, sizeof(T));
    }
  }
}

StridedCopy::Plane transpose_plane_of(int64_t element_bytes) {
  switch (element_bytes) {
    case 1: return transpose_plane<uint8_t>;
    case 2: return transpose_plane<uint16_t>;
    case 4: return transpose_plane<uint32_t>;
    default: return transpose_plane<uint64_t>;
  }
}

constexpr size_t most_axes = 48;  // of two elements and more, in a shape of at most 2^48

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
  if (axes_.size() > most_axes) fail<InternalError>("device", "a copy of {} axes", axes_.size());
  if (row != nullptr || axes_.back().from == element_bytes || axes_.back().from == 0) return;
  // A short row in the source is no gain.
  auto neighbours = std::find_if(axes_.begin(), axes_.end() - 1, [&](const Axis& a) { return a.from == element_bytes && a.extent >= 4; });
  if (neighbours == axes_.end() - 1) return;
  std::rotate(neighbours, neighbours + 1, axes_.end() - 1);
  plane_ = transpose_plane_of(element_bytes);
}

void transpose_floats(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to, int64_t to_stride) {
  constexpr int64_t bytes = sizeof(float);
  transpose_plane<uint32_t>(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), {rows, bytes, to_stride * bytes},
                            {columns, from_stride * bytes, bytes});
}

void StridedCopy::piece(const std::byte* from, std::byte* to, int64_t begin, int64_t end) const {
  if (begin >= end) return;
  from += begin * axes_[0].from;
  to += begin * axes_[0].to;
  const auto axis_at = [&](size_t axis) { return Axis{axis == 0 ? end - begin : axes_[axis].extent, axes_[axis].from, axes_[axis].to}; };
  const size_t outer = axes_.size() - (plane_ != nullptr ? 2 : 1);
  const Axis row = axis_at(axes_.size() - 1), rows = axis_at(outer);
  std::array<int64_t, most_axes> position;
  std::fill_n(position.begin(), outer, 0);
  while (true) {
    if (plane_ != nullptr) {
      plane_(from, to, rows, row);
    } else {
      row_(from, to, row.extent, row.from, row.to);
    }
    size_t axis = outer;
    while (true) {
      if (axis == 0) return;
      const Axis a = axis_at(--axis);
      from += a.from;
      to += a.to;
      if (++position[axis] < a.extent) break;
      from -= a.from * a.extent;
      to -= a.to * a.extent;
      position[axis] = 0;
    }
  }
}

}  // namespace tutti::reference
