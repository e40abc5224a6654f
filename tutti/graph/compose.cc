// Reductions and what is made of them.
#include "tutti/graph/compose.h"

#include <numbers>
#include <numeric>

#include "tutti/base/error.h"

namespace tutti {

namespace {

DType wide(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype; }

Value reduce_wide(Value x, std::string kind, Ints axes, bool keepdims) {
  return convert(reduce(convert(x, wide(x.dtype())), std::move(kind), std::move(axes), keepdims), x.dtype());
}

// How many elements go into one result.
double count(Value x, const Ints& axes) {
  double n = 1;
  for (int64_t axis : wrap_axes(axes, x.rank())) n *= static_cast<double>(x.extent(axis));
  return n;
}

void require_float(Value x, std::string_view what) {
  if (!is_float(x.dtype())) fail<InvalidArgument>("graph", "{} takes floats; got {}", what, to_string(x.type()));
}

}  // namespace

Ints all_axes(Value x) {
  Ints axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Value sum(Value x, Ints axes, bool keepdims) { return reduce_wide(x, "add", std::move(axes), keepdims); }
Value product(Value x, Ints axes, bool keepdims) { return reduce_wide(x, "multiply", std::move(axes), keepdims); }
Value reduce_max(Value x, Ints axes, bool keepdims) { return reduce(x, "max", std::move(axes), keepdims); }
Value reduce_min(Value x, Ints axes, bool keepdims) { return reduce(x, "min", std::move(axes), keepdims); }
Value any(Value x, Ints axes, bool keepdims) { return reduce(x, "or", std::move(axes), keepdims); }
Value all(Value x, Ints axes, bool keepdims) { return reduce(x, "and", std::move(axes), keepdims); }

Value mean(Value x, Ints axes, bool keepdims) {
  require_float(x, "mean");
  Value total = reduce(convert(x, wide(x.dtype())), "add", axes, keepdims);
  return convert(total / count(x, axes), x.dtype());
}

Value variance(Value x, Ints axes, bool keepdims) {
  require_float(x, "variance");
  Value precise = convert(x, wide(x.dtype()));
  Value centered = precise - mean(precise, axes, true);
  return convert(mean(square(centered), std::move(axes), keepdims), x.dtype());
}

Value softmax(Value x, Ints axes) {
  require_float(x, "softmax");
  Value powers = exponential(x - stop_gradient(reduce_max(x, axes, true)));
  return powers / sum(powers, std::move(axes), true);
}

bool is_own_sum(Value sums, Value x) {
  const Graph& graph = x.graph();
  const Node& repeat = graph.maker(sums.id());
  if (repeat.op != Op::broadcast_in_dim || !(sums.type() == x.type())) return false;
  const Node* reduced = &graph.maker(repeat.operands[0]);
  const bool reshaped = reduced->op == Op::reshape;
  if (reshaped) reduced = &graph.maker(reduced->operands[0]);
  if (reduced->op != Op::reduce || reduced->attributes.text("kind") != "add" || reduced->operands[0] != x.id()) return false;
  const Ints& dimensions = repeat.attributes.ints("dimensions");
  Ints kept, all, extents;  // axes that stay, and the shape with those that do not as 1
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const bool stays = !includes(reduced->attributes.ints("dimensions"), axis);
    if (stays) kept.push_back(axis);
    all.push_back(axis);
    extents.push_back(stays ? x.shape()[axis] : 1);
  }
  return reshaped ? dimensions == all && graph.type(repeat.operands[0]).shape == Shape(extents) : dimensions == kept;
}

Value log_softmax(Value x, Ints axes) {
  require_float(x, "log_softmax");
  Value shifted = x - stop_gradient(reduce_max(x, axes, true));
  return shifted - log(sum(exponential(shifted), std::move(axes), true));
}

Value logsumexp(Value x, Ints axes, bool keepdims) {
  require_float(x, "logsumexp");
  Value largest = stop_gradient(reduce_max(x, axes, true));
  // An infinite maximum would make inf - inf of its own elements.
  largest = select(unary(Op::is_finite, largest), largest, scalar(x.graph(), x.dtype(), 0));
  Value out = log(sum(exponential(x - largest), axes, true)) + largest;
  return keepdims ? out : squeeze(out, std::move(axes));
}

// Bits have no derivative; passes know that these are the same.
Value stop_gradient(Value x) { return is_float(x.dtype()) ? bitcast_convert(x, x.dtype()) : x; }
Value square(Value x) { return x * x; }
namespace {
// The upper 24 bits, which f32 holds exactly.
Value upper_bits(Value key, const Shape& shape) {
  const Value bits = random_bits(key, shape);
  return convert(binary(Op::shift_right_logical, bits, scalar(bits.graph(), DType::u32, 8)), DType::f32);
}
}  // namespace

Value uniform(Value key, const Shape& shape) { return upper_bits(key, shape) * 0x1p-24; }
Value normal(Value key, const Shape& shape) {
  return unary(Op::erf_inv, (upper_bits(key, shape) + 0.5) * 0x1p-23 - 1) * std::numbers::sqrt2;
}
Value is_nan(Value x) { return compare(x, x, Direction::NE); }
Value where(Value condition, Value a, Value b) { return select(convert(condition, DType::boolean), a, b); }

}  // namespace tutti
