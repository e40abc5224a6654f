// Looking up by index, and finding indices: take, one_hot, argmax, sorting, running sums.
#include <algorithm>
#include <limits>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"

namespace tutti {

namespace {

// Wide enough to count from the end of any axis.
Value as_index(Value indices) {
  switch (indices.dtype()) {
    case DType::i32:
    case DType::i64: return indices;
    case DType::u32:
    case DType::u64: return convert(indices, DType::i64);
    default: return convert(indices, DType::i32);
  }
}

double outside_value(DType dtype) {
  if (is_float(dtype)) return std::numeric_limits<double>::quiet_NaN();
  if (dtype == DType::boolean) return 1;
  // Conversion saturates to the dtype's own limits.
  return is_signed(dtype) ? std::numeric_limits<double>::lowest() : std::numeric_limits<double>::max();
}

Value from_the_start(Value indices, int64_t extent) {
  return select(compare(indices, 0, Direction::LT), indices + static_cast<double>(extent), indices);
}

Value is_inside(Value indices, int64_t extent) {
  return logical_and(compare(indices, 0, Direction::GE), compare(indices, static_cast<double>(extent), Direction::LT));
}

Value positions_along(Value x, int64_t axis) { return iota(x.graph(), {DType::i32, x.shape()}, axis); }

// x: [..., extent, ...], indices: any shape; the result has the indices' axes in place of `axis`.
Value gather_along(Value x, Value indices, int64_t axis) {
  GatherDims dims;
  for (int64_t i = 0; i < axis; ++i) dims.offset_dims.push_back(i);
  for (int64_t i = axis + 1; i < x.rank(); ++i) dims.offset_dims.push_back(i - 1 + indices.rank());
  dims.collapsed_slice_dims = dims.start_index_map = {axis};
  dims.index_vector_dim = indices.rank();
  Ints sizes = x.shape().extents();
  sizes[static_cast<size_t>(axis)] = 1;
  return gather(x, indices, dims, sizes);
}

Value arg_extreme(Value x, Value extreme, int64_t axis, bool keepdims) {
  Value here = compare(x, extreme, Direction::EQ);
  if (is_float(x.dtype())) here = logical_or(here, is_nan(x));  // the extreme is then NaN, equal to nothing
  Value index = select(here, positions_along(x, axis), scalar(x.graph(), DType::i32, static_cast<double>(x.extent(axis))));
  return reduce_min(index, {axis}, keepdims);
}

int64_t searched_axis(Value x, int64_t axis) {
  axis = wrap_axis(axis, x.rank());
  if (x.extent(axis) < 1 || x.extent(axis) > std::numeric_limits<int32_t>::max())
    fail<InvalidArgument>("graph", "no index can be found along axis {} of {}", axis, to_string(x.shape()));
  return axis;
}

}  // namespace

Value take(Value x, Value indices, int64_t axis) {
  axis = wrap_axis(axis, x.rank());
  int64_t extent = x.extent(axis), rank = indices.rank();
  indices = from_the_start(as_index(indices), extent);
  Value outside = scalar(x.graph(), x.dtype(), outside_value(x.dtype()));
  Ints out(x.shape().begin(), x.shape().begin() + axis);
  out.insert(out.end(), indices.shape().begin(), indices.shape().end());
  out.insert(out.end(), x.shape().begin() + axis + 1, x.shape().end());
  if (extent == 0) return broadcast_in_dim(outside, out, {});
  Ints dimensions(static_cast<size_t>(rank));
  std::iota(dimensions.begin(), dimensions.end(), axis);
  Value inside = broadcast_in_dim(is_inside(indices, extent), out, dimensions);
  return select(inside, gather_along(x, indices, axis), outside);
}

Value take(Value x, const Ints& indices, int64_t axis) {
  axis = wrap_axis(axis, x.rank());
  for (int64_t index : indices)
    if (index < 0 || index >= x.extent(axis))
      fail<InvalidArgument>("graph", "index {} is outside of axis {} of {}", index, axis, to_string(x.shape()));
  return gather_along(x, constant<int64_t>(x.graph(), {static_cast<int64_t>(indices.size())}, indices), axis);
}

Value take_along_axis(Value x, Value indices, int64_t axis) {
  axis = wrap_axis(axis, x.rank());
  if (indices.rank() != x.rank())
    fail<InvalidArgument>("graph", "take_along_axis takes indices of rank {}; got {}", x.rank(), to_string(indices.shape()));
  int64_t extent = x.extent(axis);
  auto with = [&](const Shape& shape, int64_t along) {
    Ints extents = shape.extents();
    extents[static_cast<size_t>(axis)] = along;
    return Shape(extents);
  };
  Shape common = broadcast(with(x.shape(), 1), with(indices.shape(), 1));
  indices = from_the_start(as_index(broadcast_to(indices, with(common, indices.extent(axis)))), extent);
  x = broadcast_to(x, with(common, extent));
  Value outside = full(x.graph(), {x.dtype(), indices.shape()}, outside_value(x.dtype()));
  if (extent == 0) return outside;
  GatherDims dims;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) dims.operand_batching_dims.push_back(i);
  dims.start_indices_batching_dims = dims.operand_batching_dims;
  dims.collapsed_slice_dims = dims.start_index_map = {axis};
  dims.index_vector_dim = indices.rank();
  return select(is_inside(indices, extent), gather(x, indices, dims, Ints(static_cast<size_t>(x.rank()), 1)), outside);
}

Value one_hot(Value indices, int64_t classes, DType dtype, int64_t axis) {
  axis = wrap_axis(axis, indices.rank() + 1);
  if (classes < 0) fail<InvalidArgument>("graph", "one_hot has {} classes", classes);
  if (!is_float(indices.dtype())) indices = as_index(indices);
  indices = expand_dims(indices, {axis});
  Ints extents = indices.shape().extents();
  extents[static_cast<size_t>(axis)] = classes;
  return convert(compare(indices, iota(indices.graph(), {indices.dtype(), extents}, axis), Direction::EQ), dtype);
}

Value argmax(Value x, int64_t axis, bool keepdims) {
  axis = searched_axis(x, axis);
  return arg_extreme(x, reduce_max(x, {axis}, true), axis, keepdims);
}

Value argmin(Value x, int64_t axis, bool keepdims) {
  axis = searched_axis(x, axis);
  return arg_extreme(x, reduce_min(x, {axis}, true), axis, keepdims);
}

Value argsort(Value x, int64_t axis, bool descending) {
  axis = wrap_axis(axis, x.rank());
  return sort({x, positions_along(x, axis)}, axis, descending)[1];
}

TopK top_k(Value x, int64_t k) {
  int64_t axis = searched_axis(x, -1);
  if (k < 0 || k > x.extent(axis)) fail<InvalidArgument>("graph", "cannot take the top {} of {}", k, to_string(x.shape()));
  // Ascending puts NaN last; turned around before and after, NaN comes first and equal values keep their order.
  auto sorted = sort({flip(x, {axis}), flip(positions_along(x, axis), {axis})}, axis);
  auto largest = [&](Value v) { return flip(slice_axis(v, axis, x.extent(axis) - k, std::nullopt), {axis}); };
  return {largest(sorted[0]), largest(sorted[1])};
}

Value cumulative(Value x, const std::string& kind, int64_t axis, bool reverse) {
  static const std::pair<std::string_view, Op> kinds[] = {
      {"add", Op::add}, {"multiply", Op::multiply}, {"max", Op::maximum}, {"min", Op::minimum}};
  auto found = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return k.first == kind; });
  if (found == std::end(kinds)) fail<InvalidArgument>("graph", "cumulative knows no kind '{}'", kind);
  axis = wrap_axis(axis, x.rank());
  int64_t extent = x.extent(axis);
  // After the step with distance d each element has met its 2 d nearest predecessors.
  for (int64_t distance = 1; distance < extent; distance *= 2) {
    Value head = reverse ? slice_axis(x, axis, extent - distance, extent) : slice_axis(x, axis, 0, distance);
    Value near = reverse ? slice_axis(x, axis, 0, extent - distance) : slice_axis(x, axis, distance, extent);
    Value far = reverse ? slice_axis(x, axis, distance, extent) : slice_axis(x, axis, 0, extent - distance);
    Value met = binary(found->second, near, far);
    x = reverse ? concatenate({met, head}, axis) : concatenate({head, met}, axis);
  }
  return x;
}

// A binary search for all values at once.
Value searchsorted(Value sorted, Value values, bool after_equals) {
  if (sorted.rank() != 1) fail<InvalidArgument>("graph", "a sorted sequence has one axis; got {}", to_string(sorted.shape()));
  int64_t n = sorted.extent(0);
  Value low = full(values.graph(), {DType::i32, values.shape()}, 0), high = full_like(low, static_cast<double>(n));
  Value last = is_nan(values);
  for (int64_t width = n; width > 0; width /= 2) {
    Value middle = (low + high) / 2.0;
    Value there = take(sorted, minimum(middle, static_cast<double>(n - 1)), 0);
    Value before = logical_or(last, compare(there, values, after_equals ? Direction::LE : Direction::LT));
    Value open = compare(low, high, Direction::LT);
    low = select(logical_and(open, before), middle + 1, low);
    high = select(logical_and(open, logical_not(before)), middle, high);
  }
  return low;
}

}  // namespace tutti
