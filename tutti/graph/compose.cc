// Reductions and what is made of them.
#include "tutti/graph/compose.h"

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
  Value powers = exponential(x - reduce_max(x, axes, true));
  return powers / sum(powers, std::move(axes), true);
}

Value log_softmax(Value x, Ints axes) {
  require_float(x, "log_softmax");
  Value shifted = x - reduce_max(x, axes, true);
  return shifted - log(sum(exponential(shifted), std::move(axes), true));
}

Value logsumexp(Value x, Ints axes, bool keepdims) {
  require_float(x, "logsumexp");
  Value largest = reduce_max(x, axes, true);
  // An infinite maximum would make inf - inf of its own elements.
  largest = select(unary(Op::is_finite, largest), largest, scalar(x.graph(), x.dtype(), 0));
  Value out = log(sum(exponential(x - largest), axes, true)) + largest;
  return keepdims ? out : squeeze(out, std::move(axes));
}

Value square(Value x) { return x * x; }
Value is_nan(Value x) { return compare(x, x, Direction::NE); }
Value where(Value condition, Value a, Value b) { return select(convert(condition, DType::boolean), a, b); }

}  // namespace tutti
