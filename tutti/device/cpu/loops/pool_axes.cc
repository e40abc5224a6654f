#include "tutti/device/cpu/loops/pool_axes.h"

#include <algorithm>

namespace tutti::cpu {

namespace {

PoolAxis pool_axis(const Shape& from, const Shape& to, const Attributes& attributes, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  const int64_t dilation = attributes.ints("window_dilation")[at], low = attributes.ints("low")[at];
  const int64_t size = attributes.ints("window")[at], stride = attributes.ints("strides")[at], inner = from.strides()[at];
  const int64_t spread = attributes.ints("base_dilation")[at];
  if (spread != 1) {  // every so manieth place of a window holds an element, which is the next one
    PoolAxis result{.places = {}, .step = inner};
    for (int64_t origin = -low; result.places.size() < static_cast<size_t>(to[axis]); origin += stride) {
      const int64_t end = origin + size, first = origin <= 0 ? 0 : (origin + spread - 1) / spread;
      const int64_t last = end <= 0 ? 0 : std::min(from[axis], (end + spread - 1) / spread);
      result.places.push_back({first * inner, std::max<int64_t>(0, last - first)});
    }
    return result;
  }
  PoolAxis result{.places = {}, .step = dilation * inner};
  for (int64_t o = 0; o < to[axis]; ++o) {
    int64_t first = o * stride - low, skipped = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
    int64_t last = first + (size - 1) * dilation;
    if (last >= from[axis]) last -= (last - from[axis] + dilation) / dilation * dilation;
    first += skipped * dilation;
    result.places.push_back({first * inner, std::max<int64_t>(0, last < first ? 0 : (last - first) / dilation + 1)});
  }
  return result;
}

bool has_window(const Attributes& a, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  return a.ints("window")[at] != 1 || a.ints("strides")[at] != 1 || a.ints("low")[at] != 0 || a.ints("high")[at] != 0 ||
         a.ints("base_dilation")[at] != 1;
}

}  // namespace

PoolAxes::Line PoolAxes::line(int64_t index) const {
  const auto& outer = axes[0].places[static_cast<size_t>(index / count(1) % count(0))];
  const auto& middle = axes[1].places[static_cast<size_t>(index % count(1))];
  return {index / lines() * image + outer.start + middle.start, outer.count, middle.count};
}

bool has_pool_axes(const Type& operand, const Shape& windows, const Attributes& attributes) {
  const int64_t rank = operand.shape.rank();
  if (operand.dtype != DType::f32 || rank < 2 || has_window(attributes, rank - 1)) return false;
  if (operand.shape.elements() == 0 || windows.elements() == 0) return false;
  for (size_t axis = 0; axis < static_cast<size_t>(rank); ++axis)
    if (attributes.ints("base_dilation")[axis] != 1 && attributes.ints("window_dilation")[axis] != 1) return false;
  int64_t first = 0;
  while (first < rank && !has_window(attributes, first)) ++first;
  return rank - 1 - first <= 3;
}

PoolAxes pool_axes(const Shape& from, const Shape& to, const Attributes& attributes) {
  PoolAxes out;
  out.channels = from[from.rank() - 1];
  // Axes before the first window are one batch; axes behind the last window, one row of channels.
  int64_t first = 0, last = from.rank() - 1;
  while (first < last && !has_window(attributes, first)) out.batch *= from[first++];
  while (last > first && !has_window(attributes, last - 1)) out.channels *= from[--last];
  for (int64_t axis = first; axis < from.rank(); ++axis) out.image *= from[axis];
  for (int64_t axis = last; axis-- > first;) out.axes[static_cast<size_t>(axis + 3 - last)] = pool_axis(from, to, attributes, axis);
  return out;
}

}  // namespace tutti::cpu
