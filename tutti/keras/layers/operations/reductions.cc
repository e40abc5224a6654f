// keras.ops that reduce axes: sums, extremes, moments, norms, and the running sums that keep them.
#include <cmath>
#include <limits>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

struct Reduction {
  Value x;
  Ints axes;
  bool keepdims;
};

Reduction reduction(Call& c) {
  Value x = array(c);
  return {x, reduction_axes(c.config, x.rank()), c.config.flag("keepdims", false)};
}

using Reduce = Value (*)(Value, Ints, bool);

template <Reduce f>
Outputs of_booleans(Call& c) {
  auto [x, axes, keepdims] = reduction(c);
  return f(convert(x, DType::boolean), axes, keepdims);
}
template <Reduce f>
Outputs of_floats(Call& c) {
  auto [x, axes, keepdims] = reduction(c);
  return f(convert(x, float_type(x.dtype())), axes, keepdims);
}

Value largest(Value x, Ints axes, bool keepdims) {
  return x.dtype() == DType::boolean ? any(x, axes, keepdims) : reduce_max(x, axes, keepdims);
}
Value smallest(Value x, Ints axes, bool keepdims) {
  return x.dtype() == DType::boolean ? all(x, axes, keepdims) : reduce_min(x, axes, keepdims);
}

template <Reduce f, Value (*meet)(Value, Value)>
Outputs extreme(Call& c) {
  auto [x, axes, keepdims] = reduction(c);
  bool empty = x.shape().elements() == 0;
  if (empty && !c.config.has("initial")) c.config.invalid("an extreme of nothing needs 'initial'; got {}", to_string(x.type()));
  Value out = f(x, axes, keepdims);
  return c.config.has("initial") ? meet(out, scalar(c.graph, x.dtype(), c.config.number("initial"))) : Value(out);
}

// Elements that are not numbers stand aside: replaced by what changes nothing.
Value or_else(Value x, double otherwise) { return is_float(x.dtype()) ? select(is_nan(x), full_like(x, otherwise), x) : x; }

template <Reduce f>
Outputs total(Call& c) {
  auto [x, axes, keepdims] = reduction(c);
  DType dtype = dtype_option(c.config, sum_type(x.dtype()));
  return f(convert(x, dtype), axes, keepdims);
}
template <Reduce f, int otherwise>
Outputs nan_total(Call& c) {
  auto [x, axes, keepdims] = reduction(c);
  return f(convert(or_else(x, otherwise), sum_type(x.dtype())), axes, keepdims);
}

template <Reduce f, bool high>
Outputs nan_extreme(Call& c) {
  auto [x, axes, keepdims] = reduction(c);
  if (!is_float(x.dtype())) return f(x, axes, keepdims);
  Value none = all(is_nan(x), axes, keepdims), out = f(or_else(x, high ? -infinity : infinity), axes, keepdims);
  return select(none, full_like(out, std::nan("")), out);
}

Value deviation(Value x, Ints axes, bool keepdims) { return sqrt(variance(x, axes, keepdims)); }

// The mean of `terms` over those places where x is a number.
Value mean_where_number(Value x, Value terms, const Ints& axes, bool keepdims) {
  Value missing = is_nan(x);
  Value count = sum(convert(logical_not(missing), DType::f32), axes, keepdims);
  return sum(select(missing, full_like(terms, 0), terms), axes, keepdims) / convert(count, x.dtype());
}
Value nan_mean(Value x, Ints axes, bool keepdims) { return mean_where_number(x, x, axes, keepdims); }
Value nan_variance(Value x, Ints axes, bool keepdims) { return mean_where_number(x, square(x - nan_mean(x, axes, true)), axes, keepdims); }
Value nan_deviation(Value x, Ints axes, bool keepdims) { return sqrt(nan_variance(x, axes, keepdims)); }

Outputs count_nonzero(Call& c) {
  auto [x, axes, keepdims] = reduction(c);
  return sum(convert(convert(x, DType::boolean), DType::i32), axes, keepdims);
}

Outputs ptp(Call& c) {
  auto [x, axes, keepdims] = reduction(c);
  return reduce_max(x, axes, keepdims) - reduce_min(x, axes, keepdims);
}

Outputs log_sum_exp(Call& c) {
  auto [x, axes, keepdims] = reduction(c);
  if (!is_float(x.dtype())) c.config.invalid("takes floats; got {}", to_string(x.type()));
  return logsumexp(x, axes, keepdims);
}

Outputs weighted_average(Call& c) {
  Operand x = operand(c, 0, "x");
  auto weights = find_operand(c, 1, "weights");
  Value values = x.as(weights ? result_type(x, *weights, python_float) : float_type(x.type().dtype));
  Ints axes = reduction_axes(c.config, values.rank());
  if (!weights) return mean(values, axes);
  Value w = weights->as(values.dtype());
  if (!(w.shape() == values.shape())) {
    if (w.rank() != 1 || axes.size() != 1 || w.extent(0) != values.extent(axes[0]))
      c.config.invalid("weights have the shape of x or of its one averaged axis; got {} and {}", to_string(w.type()),
                       to_string(values.type()));
    w = broadcast_in_dim(w, values.shape(), axes);
  }
  return sum(values * w, axes) / sum(w, axes);
}

// argmax and argmin; without an axis, of the flattened tensor.
template <Value (*f)(Value, int64_t, bool)>
Outputs arg_extreme(Call& c) {
  Value x = array(c);
  if (x.dtype() == DType::boolean) x = convert(x, DType::i32);
  bool keepdims = c.config.flag("keepdims", false);
  if (c.config.has("axis")) {
    Value flat = x.rank() == 0 ? reshape(x, {1}) : x;
    Value out = f(flat, wrapped_axis(c.config, c.config.integer("axis"), flat.rank()), keepdims && x.rank() > 0);
    return out;
  }
  Value out = f(flatten(x), 0, false);
  return keepdims ? reshape(out, Ints(static_cast<size_t>(x.rank()), 1)) : out;
}

// The same among numbers; -1 where there is none.
template <Value (*f)(Value, int64_t, bool), bool high>
Value nan_arg(Value x, int64_t axis, bool keepdims) {
  if (!is_float(x.dtype())) return f(x, axis, keepdims);
  Value out = f(or_else(x, high ? -infinity : infinity), axis, keepdims);
  return select(all(is_nan(x), {axis}, keepdims), full_like(out, -1), out);
}

struct Running {
  Value x;
  int64_t axis;
};
Running running(Call& c, Value x) {
  x = convert(x, dtype_option(c.config, x.dtype() == DType::boolean ? DType::i32 : x.dtype()));
  if (!c.config.has("axis")) return {flatten(x), 0};
  return {x, wrapped_axis(c.config, c.config.integer("axis"), x.rank())};
}
Outputs cumsum(Call& c) {
  auto [x, axis] = running(c, array(c));
  return cumulative(x, "add", axis);
}
Outputs cumprod(Call& c) {
  auto [x, axis] = running(c, array(c));
  return cumulative(x, "multiply", axis);
}
Outputs nancumsum(Call& c) {
  auto [x, axis] = running(c, or_else(array(c), 0));
  return cumulative(x, "add", axis);
}
Outputs nancumprod(Call& c) {
  auto [x, axis] = running(c, or_else(array(c), 1));
  return cumulative(x, "multiply", axis);
}

Value difference(Value x, int64_t axis) {
  Value later = slice_axis(x, axis, 1, std::nullopt), earlier = slice_axis(x, axis, 0, -1);
  return x.dtype() == DType::boolean ? compare(later, earlier, Direction::NE) : later - earlier;
}

Outputs diff(Call& c) {
  Value x = array(c, "a");
  int64_t axis = wrapped_axis(c.config, c.config.integer("axis", -1), x.rank()), n = c.config.integer("n", 1);
  if (n < 0 || n > most_parts) c.config.invalid("'n' is between 0 and {}; got {}", most_parts, n);
  for (int64_t i = 0; i < n; ++i) x = x.extent(axis) > 0 ? difference(x, axis) : x;
  return x;
}

Outputs trapezoid(Call& c) {
  Value y = array(c, "y");
  y = convert(y, float_type(y.dtype()));
  int64_t axis = wrapped_axis(c.config, c.config.integer("axis", -1), y.rank());
  Value heights = slice_axis(y, axis, 1, std::nullopt) + slice_axis(y, axis, 0, -1);
  if (!c.config.has("x")) return sum(heights, {axis}) * c.config.number("dx", 1.0) * 0.5;
  Value x = convert(c.graph.constant(read_array(c.config, c.config.at("x"), "x")), y.dtype());
  if (x.rank() != 1) c.config.unsupported("'x' of rank {} is not done", x.rank());
  Value widths = broadcast_in_dim(difference(x, 0), heights.shape(), {axis});
  return sum(heights * widths, {axis}) * 0.5;
}

Value vector_norm(Value x, const Ints& axes, bool keepdims, double order) {
  Value size = abs(x);
  if (order == infinity) return reduce_max(size, axes, keepdims);
  if (order == -infinity) return reduce_min(size, axes, keepdims);
  if (order == 0) return sum(convert(compare(x, 0, Direction::NE), x.dtype()), axes, keepdims);
  if (order == 1) return sum(size, axes, keepdims);
  if (order == 2) return sqrt(sum(square(x), axes, keepdims));
  return power(sum(power(size, order), axes, keepdims), 1 / order);
}

Outputs norm(Call& c) {
  Value x = array(c);
  x = convert(x, float_type(x.dtype()));
  bool keepdims = c.config.flag("keepdims", false);
  const Json& order = c.config.get("ord");
  Ints axes = reduction_axes(c.config, x.rank());
  if (order.is_null()) return vector_norm(x, axes, keepdims, 2);
  if (axes.size() == 1 && order.is_number()) return vector_norm(x, axes, keepdims, order.as_number());
  if (axes.size() != 2) c.config.invalid("'ord' {} goes with one or two axes; got {}", order.dump(), to_string(axes));
  if (order.is_string() && order.as_string() == "fro") return vector_norm(x, axes, keepdims, 2);
  if (order.is_string() || std::abs(order.as_number()) == 2)
    c.config.unsupported("matrix norm {} needs singular values, which are not done", order.dump());
  double o = order.as_number();
  bool rows = std::isinf(o);  // sums along rows for the infinite orders, along columns for 1 and -1
  if (!rows && std::abs(o) != 1) c.config.invalid("matrix norm {} does not exist", order.dump());
  Value sums = sum(abs(x), {axes[rows ? 1 : 0]}, true), out;
  out = o > 0 ? reduce_max(sums, axes, keepdims) : reduce_min(sums, axes, keepdims);
  return out;
}

constexpr std::string_view plain_reduction = "axis keepdims";

}  // namespace

Rows reduction_operations() {
  static const LayerRow rows[] = {
      operation("All", of_booleans<all>, plain_reduction),
      operation("Amax", extreme<largest, maximum>, plain_reduction),
      operation("Amin", extreme<smallest, minimum>, plain_reduction),
      operation("Any", of_booleans<any>, plain_reduction),
      operation("Argmax", arg_extreme<argmax>, plain_reduction),
      operation("Argmin", arg_extreme<argmin>, plain_reduction),
      operation("Average", weighted_average, "axis"),
      operation("CountNonzero", count_nonzero, "axis"),
      operation("Cumprod", cumprod, "axis"),
      operation("Cumsum", cumsum, "axis"),
      operation("Diff", diff, "n axis"),
      operation("Logsumexp", log_sum_exp, plain_reduction),
      operation("Max", extreme<largest, maximum>, "axis keepdims initial"),
      operation("Mean", of_floats<mean>, plain_reduction),
      operation("Min", extreme<smallest, minimum>, "axis keepdims initial"),
      operation("Nanargmax", arg_extreme<nan_arg<argmax, true>>, plain_reduction),
      operation("Nanargmin", arg_extreme<nan_arg<argmin, false>>, plain_reduction),
      operation("Nancumprod", nancumprod, "axis"),
      operation("Nancumsum", nancumsum, "axis"),
      operation("Nanmax", nan_extreme<largest, true>, plain_reduction),
      operation("Nanmean", of_floats<nan_mean>, plain_reduction),
      operation("Nanmin", nan_extreme<smallest, false>, plain_reduction),
      operation("Nanprod", nan_total<product, 1>, plain_reduction),
      operation("Nanstd", of_floats<nan_deviation>, plain_reduction),
      operation("Nansum", nan_total<sum, 0>, plain_reduction),
      operation("Nanvar", of_floats<nan_variance>, plain_reduction),
      operation("Norm", norm, "ord axis keepdims", "matrix norms 2, -2 and 'nuc' are refused: they need singular values"),
      operation("Prod", total<product>, plain_reduction),
      operation("Ptp", ptp, plain_reduction),
      operation("Std", of_floats<deviation>, plain_reduction),
      operation("Sum", total<sum>, plain_reduction),
      operation("Trapezoid", trapezoid, "x dx axis"),
      operation("Var", of_floats<variance>, plain_reduction),
  };
  return rows;
}

}  // namespace tutti::keras
