// tf.math and Python's operators: elementwise functions, comparisons, reductions, sums along an axis.
#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/tensorflow/arguments.h"

namespace tutti::keras::tf {

namespace {

template <Value (*f)(Value)>
Outputs unary_function(Call& c) {
  return f(tensor(c));
}
template <Op op>
Value apply(Value x) {
  return unary(op, x);
}
template <Value (*f)(Value, Value)>
Outputs binary_function(Call& c) {
  auto [a, b] = pair(c, "y");
  return f(a, b);
}
template <Op op>
Value combine(Value a, Value b) {
  return binary(op, a, b);
}
template <Direction direction>
Value compared(Value a, Value b) {
  return compare(a, b, direction);
}

Value reciprocal(Value x) { return 1.0 / x; }
Value is_infinite(Value x) { return logical_not(logical_or(unary(Op::is_finite, x), is_nan(x))); }
Value log_sigmoid_of(Value x) { return log_sigmoid(x); }
Value softplus_of(Value x) { return softplus(x); }

// Integers become floats of 64 bits, the small ones of 32.
Value true_divide(Value a, Value b) {
  if (is_float(a.dtype())) return a / b;
  DType to = byte_size(a.dtype()) <= 2 ? DType::f32 : DType::f64;
  return convert(a, to) / convert(b, to);
}
Value floor_divide(Value a, Value b) {
  if (is_float(a.dtype())) return floor(a / b);
  Value quotient = a / b;
  if (!is_signed(a.dtype())) return quotient;
  Value inexact = compare(remainder(a, b), 0, Direction::NE);
  Value opposite = compare(compare(a, 0, Direction::LT), compare(b, 0, Direction::LT), Direction::NE);
  return quotient - convert(logical_and(inexact, opposite), a.dtype());
}
Value floor_modulo(Value a, Value b) {
  Value left = remainder(a, b);
  if (!is_signed(a.dtype())) return left;
  Value opposite = compare(compare(left, 0, Direction::LT), compare(b, 0, Direction::LT), Direction::NE);
  return select(logical_and(compare(left, 0, Direction::NE), opposite), left + b, left);
}
Value divide_no_nan(Value a, Value b) {
  Value quotient = a / b;
  return select(compare(b, 0, Direction::EQ), full_like(quotient, 0), quotient);
}
Value squared_difference(Value a, Value b) { return square(a - b); }

// Towards zero.
Value truncate_divide(Value a, Value b) {
  if (!is_float(a.dtype())) return a / b;
  Value quotient = a / b;
  return select(compare(quotient, 0, Direction::LT), -floor(-quotient), floor(quotient));
}
// y = 0 makes 0 of everything, x log(y), x log(1 + y) and x / y of x = 0 likewise.
Value multiply_no_nan(Value x, Value y) {
  Value product = x * y;
  return select(compare(y, 0, Direction::EQ), full_like(product, 0), product);
}
Value times_log(Value x, Value y) {
  Value product = x * log(y);
  return select(compare(x, 0, Direction::EQ), full_like(product, 0), product);
}
Value times_log_plus_one(Value x, Value y) {
  Value product = x * log_plus_one(y);
  return select(compare(x, 0, Direction::EQ), full_like(product, 0), product);
}
Value zero_over(Value x, Value y) {
  Value quotient = x / y;
  return select(compare(x, 0, Direction::EQ), full_like(quotient, 0), quotient);
}
Value complement_of_erf(Value x) { return 1.0 - unary(Op::erf, x); }

// tf.math.atan2(y, x)
Outputs atan2(Call& c) {
  auto [y, x] = pair(c, "x");
  return binary(Op::atan2, y, x);
}

// tf.math.scalar_mul(scalar, x)
Outputs scalar_mul(Call& c) {
  auto [scalar, x] = pair(c, "x");
  return scalar * x;
}

Outputs add_n(Call& c) {
  std::vector<Value> terms = tensors(c);
  Value sum = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
  return sum;
}

// coeffs, x: a list, the highest power first
Outputs polynomial(Call& c) {
  const Value x = tensor(c, "x");
  const Argument& list = argument(c);
  if (list.kind == Argument::Kind::constant || list.items.empty()) c.config.unsupported("'coeffs' that is no list of numbers and tensors");
  Value sum = tensor(c, list.items[0], x.dtype());
  for (size_t i = 1; i < list.items.size(); ++i) sum = sum * x + tensor(c, list.items[i], x.dtype());
  return sum;
}

// input_tensor, axis, keepdims
template <Value (*f)(Value, Ints, bool)>
Outputs reduction(Call& c) {
  Value x = tensor(c);
  return f(x, axes(c, x), flag(c, "keepdims", false));
}
template <Value (*f)(Value, Ints, bool)>
Outputs float_reduction(Call& c) {
  Value x = tensor(c);
  if (!is_float(x.dtype())) c.config.unsupported("means of integers");
  return f(x, axes(c, x), flag(c, "keepdims", false));
}
Value deviation(Value x, Ints over, bool keepdims) { return sqrt(variance(x, std::move(over), keepdims)); }

Value euclidean_norm(Value x, Ints over, bool keepdims) { return sqrt(sum(square(x), std::move(over), keepdims)); }
// input, axis, keepdims, dtype
Outputs count_nonzero(Call& c) {
  Value x = tensor(c);
  Value counted = convert(compare(x, 0, Direction::NE), DType::i64);
  return convert(sum(counted, axes(c, x), flag(c, "keepdims", false)), dtype(c, "dtype", DType::i64));
}

template <Value (*f)(Value, int64_t, bool)>
Outputs index_of_extreme(Call& c) {
  Value x = tensor(c);
  return convert(f(x, axis(c, x.rank(), "axis", 0), false), dtype(c, "output_type", DType::i64));
}

// x, axis = 0, exclusive, reverse
Outputs running(Call& c, const char* kind) {
  Value x = tensor(c);
  int64_t along = axis(c, x.rank(), "axis", 0), extent = x.extent(along);
  bool backwards = flag(c, "reverse", false);
  Value out = cumulative(x, kind, along, backwards);
  if (!flag(c, "exclusive", false) || extent == 0) return out;
  // Without the element itself: moved on by one, the identity in front.
  Ints one = x.shape().extents();
  one[static_cast<size_t>(along)] = 1;
  Value identity = full(c.graph, {x.dtype(), one}, std::string_view(kind) == "add" ? 0 : 1);
  if (backwards) return concatenate({slice_axis(out, along, 1, extent), identity}, along);
  return concatenate({identity, slice_axis(out, along, 0, extent - 1)}, along);
}
Outputs cumsum(Call& c) { return running(c, "add"); }
Outputs cumprod(Call& c) { return running(c, "multiply"); }

// x, axis, epsilon
Outputs l2_normalize(Call& c) {
  Value x = tensor(c);
  return x * rsqrt(maximum(sum(square(x), axes(c, x), true), number(c, "epsilon", 1e-12)));
}

// tensor, ord, axis
Value norm_of(Call& c, Value x, bool keepdims) {
  const Argument* given = find(c, "ord");
  bool euclidean = given == nullptr || given->constant == Json("euclidean") || given->constant == Json(2);
  bool absolute = given != nullptr && given->constant == Json(1);
  Ints over = axes(c, x);
  bool matrix = find(c, "axis") != nullptr && over.size() == 2 && given != nullptr && given->constant != Json("euclidean");
  if ((!euclidean && !absolute) || matrix) c.config.unsupported("'ord' other than 1, 2 and euclidean");
  return absolute ? sum(abs(x), over, keepdims) : sqrt(sum(square(x), over, keepdims));
}

// tensor, ord, axis, keepdims
Outputs norm(Call& c) { return norm_of(c, tensor(c), flag(c, "keepdims", false)); }
// tensor, ord, axis -> what has the norm 1, and the norm
Outputs normalize(Call& c) {
  Value x = tensor(c), length = norm_of(c, x, true);
  return std::vector<Signal>{{x / length, {}}, {length, {}}};
}
// t, clip_norm, axes
Outputs clip_by_norm(Call& c) {
  Value x = tensor(c), most = tensor(c, "clip_norm", x.dtype());
  return x * most / maximum(sqrt(sum(square(x), axes(c, x, "axes"), true)), most);
}

// t, clip_value_min, clip_value_max
Outputs clip_by_value(Call& c) {
  Value x = tensor(c);
  return minimum(maximum(x, tensor(c, "clip_value_min", x.dtype())), tensor(c, "clip_value_max", x.dtype()));
}

Outputs top_k(Call& c) {
  Value x = tensor(c);
  TopK found = tutti::top_k(x, integer(c, "k", 1));
  return std::vector<Signal>{{found.values, {}}, {found.indices, {}}};
}

}  // namespace

std::span<const Function> math_functions() {
  static const Function functions[] = {
      {"__operators__.add", binary_function<combine<Op::add>>},
      {"__operators__.eq", binary_function<compared<Direction::EQ>>},
      {"__operators__.ne", binary_function<compared<Direction::NE>>},
      {"clip_by_norm", clip_by_norm},
      {"clip_by_value", clip_by_value},
      {"floor_div", binary_function<floor_divide>},
      {"linalg.l2_normalize", l2_normalize},
      {"linalg.norm", norm},
      {"linalg.normalize", normalize},
      {"math.abs", unary_function<abs>},
      {"math.accumulate_n", add_n},
      {"math.acos", unary_function<apply<Op::acos>>},
      {"math.acosh", unary_function<apply<Op::acosh>>},
      {"math.add", binary_function<combine<Op::add>>},
      {"math.add_n", add_n},
      {"math.argmax", index_of_extreme<argmax>},
      {"math.argmin", index_of_extreme<argmin>},
      {"math.asin", unary_function<apply<Op::asin>>},
      {"math.asinh", unary_function<apply<Op::asinh>>},
      {"math.atan", unary_function<apply<Op::atan>>},
      {"math.atan2", atan2},
      {"math.atanh", unary_function<apply<Op::atanh>>},
      {"math.ceil", unary_function<apply<Op::ceil>>},
      {"math.cos", unary_function<apply<Op::cosine>>},
      {"math.cosh", unary_function<apply<Op::cosh>>},
      {"math.count_nonzero", count_nonzero},
      {"math.cumprod", cumprod},
      {"math.cumsum", cumsum},
      {"math.divide", binary_function<true_divide>},
      {"math.divide_no_nan", binary_function<divide_no_nan>},
      {"math.equal", binary_function<compared<Direction::EQ>>},
      {"math.erf", unary_function<erf>},
      {"math.erfc", unary_function<complement_of_erf>},
      {"math.erfinv", unary_function<apply<Op::erf_inv>>},
      {"math.exp", unary_function<exponential>},
      {"math.expm1", unary_function<exponential_minus_one>},
      {"math.floor", unary_function<floor>},
      {"math.floordiv", binary_function<floor_divide>},
      {"math.floormod", binary_function<floor_modulo>},
      {"math.greater", binary_function<compared<Direction::GT>>},
      {"math.greater_equal", binary_function<compared<Direction::GE>>},
      {"math.is_finite", unary_function<apply<Op::is_finite>>},
      {"math.is_inf", unary_function<is_infinite>},
      {"math.is_nan", unary_function<is_nan>},
      {"math.l2_normalize", l2_normalize},
      {"math.less", binary_function<compared<Direction::LT>>},
      {"math.less_equal", binary_function<compared<Direction::LE>>},
      {"math.lgamma", unary_function<apply<Op::lgamma>>},
      {"math.log", unary_function<log>},
      {"math.log1p", unary_function<log_plus_one>},
      {"math.log_sigmoid", unary_function<log_sigmoid_of>},
      {"math.logical_and", binary_function<logical_and>},
      {"math.logical_not", unary_function<logical_not>},
      {"math.logical_or", binary_function<logical_or>},
      {"math.logical_xor", binary_function<combine<Op::xor_>>},
      {"math.maximum", binary_function<maximum>},
      {"math.minimum", binary_function<minimum>},
      {"math.multiply", binary_function<combine<Op::multiply>>},
      {"math.multiply_no_nan", binary_function<multiply_no_nan>},
      {"math.negative", unary_function<apply<Op::negate>>},
      {"math.not_equal", binary_function<compared<Direction::NE>>},
      {"math.polyval", polynomial},
      {"math.pow", binary_function<power>},
      {"math.reciprocal", unary_function<reciprocal>},
      {"math.reduce_all", reduction<all>},
      {"math.reduce_any", reduction<any>},
      {"math.reduce_euclidean_norm", float_reduction<euclidean_norm>},
      {"math.reduce_logsumexp", float_reduction<logsumexp>},
      {"math.reduce_max", reduction<reduce_max>},
      {"math.reduce_mean", float_reduction<mean>},
      {"math.reduce_min", reduction<reduce_min>},
      {"math.reduce_prod", reduction<product>},
      {"math.reduce_std", float_reduction<deviation>},
      {"math.reduce_sum", reduction<sum>},
      {"math.reduce_variance", float_reduction<variance>},
      {"math.rint", unary_function<apply<Op::round_nearest_even>>},
      {"math.round", unary_function<apply<Op::round_nearest_even>>},
      {"math.rsqrt", unary_function<rsqrt>},
      {"math.scalar_mul", scalar_mul},
      {"math.sigmoid", unary_function<logistic>},
      {"math.sign", unary_function<sign>},
      {"math.sin", unary_function<apply<Op::sine>>},
      {"math.sinh", unary_function<apply<Op::sinh>>},
      {"math.softplus", unary_function<softplus_of>},
      {"math.sqrt", unary_function<sqrt>},
      {"math.square", unary_function<square>},
      {"math.squared_difference", binary_function<squared_difference>},
      {"math.subtract", binary_function<combine<Op::subtract>>},
      {"math.tan", unary_function<apply<Op::tan>>},
      {"math.tanh", unary_function<tanh>},
      {"math.top_k", top_k},
      {"math.truediv", binary_function<true_divide>},
      {"math.xdivy", binary_function<zero_over>},
      {"math.xlog1py", binary_function<times_log_plus_one>},
      {"math.xlogy", binary_function<times_log>},
      {"norm", norm},
      {"truncatediv", binary_function<truncate_divide>},
      {"truncatemod", binary_function<remainder>},
  };
  return functions;
}

}  // namespace tutti::keras::tf
