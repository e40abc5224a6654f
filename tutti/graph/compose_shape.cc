// Movement of data: axes, slices, padding, repetition, and NumPy's matmul.
#include <algorithm>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"

namespace tutti {

namespace {

constexpr int64_t longest_index = int64_t{1} << 24;

int64_t& entry(Ints& list, int64_t index) { return list[static_cast<size_t>(index)]; }

Ints distinct_axes(Ints axes, int64_t rank) {
  axes = wrap_axes(std::move(axes), rank);
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (axes[i] == axes[j]) fail<InvalidArgument>("graph", "axis {} is given twice", axes[i]);
  return axes;
}

Value slice_range(Value x, int64_t axis, int64_t start, int64_t limit, int64_t stride) {
  if (start == 0 && limit == x.extent(axis) && stride == 1) return x;
  Ints starts(static_cast<size_t>(x.rank()), 0), limits = x.shape().extents(), strides(static_cast<size_t>(x.rank()), 1);
  entry(starts, axis) = start;
  entry(limits, axis) = limit;
  entry(strides, axis) = stride;
  return slice(x, starts, limits, strides);
}

// Where element `i` of a padded axis comes from; i counts from the first element of x.
int64_t mirrored(int64_t i, int64_t extent, PadMode mode) {
  if (mode == PadMode::edge || extent == 1) return std::clamp<int64_t>(i, 0, extent - 1);
  int64_t period = mode == PadMode::reflect ? 2 * (extent - 1) : 2 * extent;
  int64_t p = ((i % period) + period) % period;
  return p < extent ? p : mode == PadMode::reflect ? period - p : period - 1 - p;
}

}  // namespace

Value expand_dims(Value x, Ints axes) {
  int64_t rank = x.rank() + static_cast<int64_t>(axes.size());
  axes = distinct_axes(std::move(axes), rank);
  Ints extents;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i) extents.push_back(includes(axes, i) ? 1 : x.shape().extents()[next++]);
  return reshape(x, extents);
}

Value squeeze(Value x, Ints axes) {
  axes = distinct_axes(std::move(axes), x.rank());
  Ints extents;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!includes(axes, i)) {
      extents.push_back(x.extent(i));
    } else if (x.extent(i) != 1) {
      fail<InvalidArgument>("graph", "cannot squeeze axis {} of {}", i, to_string(x.shape()));
    }
  }
  return reshape(x, extents);
}

Value squeeze(Value x) {
  Ints extents;
  for (int64_t extent : x.shape())
    if (extent != 1) extents.push_back(extent);
  return reshape(x, extents);
}

Value flatten(Value x, int64_t first_axis) {
  if (first_axis == 0 && x.rank() == 0) return reshape(x, {1});
  first_axis = wrap_axis(first_axis, x.rank());
  Ints extents(x.shape().begin(), x.shape().begin() + first_axis);
  extents.push_back(std::accumulate(x.shape().begin() + first_axis, x.shape().end(), int64_t{1}, std::multiplies<>()));
  return reshape(x, extents);
}

Value moveaxis(Value x, Ints from, Ints to) {
  from = distinct_axes(std::move(from), x.rank());
  to = distinct_axes(std::move(to), x.rank());
  if (from.size() != to.size())
    fail<InvalidArgument>("graph", "moveaxis takes as many axes from as to; got {} and {}", from.size(), to.size());
  Ints permutation(static_cast<size_t>(x.rank()), -1);
  for (size_t i = 0; i < from.size(); ++i) entry(permutation, to[i]) = from[i];
  int64_t next = 0;
  for (int64_t& axis : permutation) {
    if (axis >= 0) continue;
    while (includes(from, next)) ++next;
    axis = next++;
  }
  return transpose(x, permutation);
}

Value swapaxes(Value x, int64_t a, int64_t b) {
  Ints permutation = all_axes(x);
  std::swap(entry(permutation, wrap_axis(a, x.rank())), entry(permutation, wrap_axis(b, x.rank())));
  return transpose(x, permutation);
}

Value stack(const std::vector<Value>& parts, int64_t axis) {
  std::vector<Value> expanded;
  for (Value part : parts) expanded.push_back(expand_dims(part, {axis}));
  return concatenate(expanded, axis);
}

Value repeat(Value x, int64_t times, int64_t axis) {
  axis = wrap_axis(axis, x.rank());
  if (times < 0) fail<InvalidArgument>("graph", "cannot repeat {} times", times);
  if (times == 1) return x;
  Ints wide = x.shape().extents(), dimensions = all_axes(x), extents = wide;
  wide.insert(wide.begin() + axis + 1, times);
  for (int64_t i = axis + 1; i < x.rank(); ++i) ++entry(dimensions, i);
  entry(extents, axis) = Shape({x.extent(axis), times}).elements();
  return reshape(broadcast_in_dim(x, wide, dimensions), extents);
}

Value tile(Value x, Ints repeats) {
  Ints extents = x.shape().extents();
  while (extents.size() < repeats.size()) extents.insert(extents.begin(), 1);
  while (repeats.size() < extents.size()) repeats.insert(repeats.begin(), 1);
  Ints wide, dimensions, out;
  for (size_t i = 0; i < extents.size(); ++i) {
    wide.push_back(repeats[i]);
    dimensions.push_back(static_cast<int64_t>(wide.size()));
    wide.push_back(extents[i]);
    out.push_back(Shape({repeats[i], extents[i]}).elements());
  }
  return reshape(broadcast_in_dim(reshape(x, extents), wide, dimensions), out);
}

Value flip(Value x, Ints axes) { return axes.empty() ? x : reverse(x, std::move(axes)); }

Value roll(Value x, int64_t shift, int64_t axis) {
  axis = wrap_axis(axis, x.rank());
  int64_t extent = x.extent(axis);
  if (extent == 0) return x;
  int64_t first = extent - ((shift % extent) + extent) % extent;  // becomes element 0
  if (first == extent) return x;
  return concatenate({slice_range(x, axis, first, extent, 1), slice_range(x, axis, 0, first, 1)}, axis);
}

Value slice_axis(Value x, int64_t axis, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
  axis = wrap_axis(axis, x.rank());
  if (step == 0) fail<InvalidArgument>("graph", "a slice's step is not 0");
  int64_t extent = x.extent(axis);
  // Bounds as Python's slice.indices(extent) gives them.
  int64_t least = step > 0 ? 0 : -1, most = step > 0 ? extent : extent - 1;
  auto bound = [&](std::optional<int64_t> given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + extent : *given, least, most);
  };
  int64_t first = bound(start, step > 0 ? 0 : extent - 1), last = bound(stop, step > 0 ? extent : -1);
  if (step > 0) return slice_range(x, axis, first, std::max(first, last), std::min(step, std::max<int64_t>(extent, 1)));
  int64_t stride = step <= -std::max<int64_t>(extent, 1) ? std::max<int64_t>(extent, 1) : -step;
  if (first <= last) return slice_range(x, axis, 0, 0, 1);
  // The same elements in rising order, then turned around: the lowest is first - k * stride above `last`.
  int64_t lowest = first - (first - last - 1) / stride * stride;
  return reverse(slice_range(x, axis, lowest, first + 1, stride), {axis});
}

Value index_axis(Value x, int64_t axis, int64_t index) {
  axis = wrap_axis(axis, x.rank());
  int64_t extent = x.extent(axis);
  if (index < -extent || index >= extent)
    fail<InvalidArgument>("graph", "index {} is outside of axis {} of {}", index, axis, to_string(x.shape()));
  if (index < 0) index += extent;
  return squeeze(slice_range(x, axis, index, index + 1, 1), {axis});
}

std::vector<Value> split(Value x, int64_t axis, const Ints& sizes) {
  axis = wrap_axis(axis, x.rank());
  std::vector<Value> parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > x.extent(axis) - start)
      fail<InvalidArgument>("graph", "cannot split axis {} of {} into {}", axis, to_string(x.shape()), to_string(sizes));
    parts.push_back(slice_range(x, axis, start, start + size, 1));
    start += size;
  }
  return parts;
}

Value pad(Value x, PadMode mode, const Ints& low, const Ints& high, double value) {
  if (low.size() != high.size() || static_cast<int64_t>(low.size()) != x.rank())
    fail<InvalidArgument>("graph", "padding has {} and {} entries for rank {}", low.size(), high.size(), x.rank());
  if (mode == PadMode::constant) return pad(x, value, low, high);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    auto i = static_cast<size_t>(axis);
    int64_t extent = x.extent(axis);
    if (low[i] == 0 && high[i] == 0) continue;
    if (low[i] < 0 || high[i] < 0 || low[i] > longest_index || high[i] > longest_index || extent > longest_index || extent == 0)
      fail<InvalidArgument>("graph", "cannot pad axis {} of {} by {} and {}", axis, to_string(x.shape()), low[i], high[i]);
    Ints indices;
    for (int64_t p = -low[i]; p < extent + high[i]; ++p) indices.push_back(mirrored(p, extent, mode));
    x = take(x, indices, axis);
  }
  return x;
}

Value matmul(Value a, Value b) {
  if (a.rank() == 0 || b.rank() == 0)
    fail<InvalidArgument>("graph", "matmul takes at least vectors; got {} and {}", to_string(a.shape()), to_string(b.shape()));
  if (a.rank() == 1 || b.rank() <= 2) {
    // No batch axes on both sides: one contraction says it all.
    return a.rank() == 1 && b.rank() > 2 ? index_axis(matmul(expand_dims(a, {0}), b), -2, 0)
                                         : dot_general(a, b, {{}, {}, {a.rank() - 1}, {b.rank() == 1 ? 0 : b.rank() - 2}});
  }
  if (a.rank() == 2) return matmul(expand_dims(a, {0}), b);
  auto leading = [](Value v) { return Shape(Ints(v.shape().begin(), v.shape().end() - 2)); };
  Shape batch = broadcast(leading(a), leading(b));
  auto with_batch = [&](Value v) {
    Ints extents = batch.extents();
    extents.insert(extents.end(), v.shape().end() - 2, v.shape().end());
    return broadcast_to(v, extents);
  };
  Ints axes(static_cast<size_t>(batch.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return dot_general(with_batch(a), with_batch(b), {axes, axes, {batch.rank() + 1}, {batch.rank()}});
}

}  // namespace tutti
