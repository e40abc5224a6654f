// keras.ops on each element of one tensor.
#include <cmath>
#include <limits>
#include <numbers>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/extreme.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

constexpr double pi = std::numbers::pi;

Value zeros_like(Value x) { return full_like(x, 0); }
Value always(Value x, bool value) { return full(x.graph(), {DType::boolean, x.shape()}, value ? 1 : 0); }
Value is_zero(Value x) { return compare(x, 0, Direction::EQ); }

// A float's sign bit, that of -0 and of NaN included; an integer's sign.
Value signbit(Value x) {
  if (x.dtype() == DType::boolean || (is_integer(x.dtype()) && !is_signed(x.dtype()))) return always(x, false);
  DType bits = byte_size(x.dtype()) == 2 ? DType::i16 : byte_size(x.dtype()) == 4 ? DType::i32 : DType::i64;
  return compare(is_float(x.dtype()) ? bitcast_convert(x, bits) : x, 0, Direction::LT);
}

Value truncate(Value x) {
  if (!is_float(x.dtype())) return x;
  return select(compare(x, 0, Direction::LT), unary(Op::ceil, x), floor(x));
}

Value angle(Value x) { return binary(Op::atan2, zeros_like(x), x); }
Value exp2(Value x) { return power(full_like(x, 2), x); }
Value log2(Value x) { return log(x) / std::numbers::ln2; }
Value log10(Value x) { return log(x) / std::numbers::ln10; }
Value reciprocal(Value x) { return 1.0 / x; }
Value radians(Value x) { return x * (pi / 180); }
Value degrees(Value x) { return x * (180 / pi); }
Value erfc(Value x) { return 1.0 - erf(x); }

Value sinc(Value x) {
  Value scaled = select(is_zero(x), full_like(x, 1), x * pi);
  return select(is_zero(x), full_like(x, 1), unary(Op::sine, scaled) / scaled);
}

Value sign_of(Value x) {
  return x.dtype() == DType::boolean ? x : is_signed(x.dtype()) ? sign(x) : convert(compare(x, 0, Direction::NE), x.dtype());
}
Value magnitude(Value x) { return is_signed(x.dtype()) ? abs(x) : x; }
Value squared(Value x) { return square(x.dtype() == DType::boolean ? convert(x, DType::i32) : x); }
Value logical_negation(Value x) { return logical_not(convert(x, DType::boolean)); }

Value finite(Value x) { return is_float(x.dtype()) ? unary(Op::is_finite, x) : always(x, true); }
Value equals(Value x, double value) { return is_float(x.dtype()) ? compare(x, value, Direction::EQ) : always(x, false); }
Value positive_infinite(Value x) { return equals(x, infinity); }
Value negative_infinite(Value x) { return equals(x, -infinity); }
Value infinite(Value x) { return logical_or(positive_infinite(x), negative_infinite(x)); }
Value real(Value x) { return always(x, true); }
Value nan(Value x) { return is_float(x.dtype()) ? is_nan(x) : always(x, false); }

Value polynomial(Value x, std::initializer_list<double> coefficients) {  // the highest power first
  Value out = full_like(x, 0);
  for (double coefficient : coefficients) out = out * x + coefficient;
  return out;
}

// The modified Bessel function of order 0 by the polynomials 9.8.1 and 9.8.2 of Abramowitz and Stegun (relative error below 2e-7).
Value bessel_i0(Value x) {
  Value size = abs(x), near = minimum(size, 3.75) / 3.75, far = 3.75 / maximum(size, 3.75);
  Value small = polynomial(near * near, {0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0});
  Value large =
      polynomial(far, {0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565, 0.00225319, 0.01328592, 0.39894228});
  return select(compare(size, 3.75, Direction::LT), small, exponential(size) / sqrt(maximum(size, 3.75)) * large);
}

// Keras computes these of 64-bit integers in 64 bits.
template <Value (*f)(Value)>
Outputs on_wide_float(Call& c) {
  Value x = array(c);
  return f(convert(x, x.dtype() == DType::i64 ? DType::f64 : float_type(x.dtype())));
}

Outputs round(Call& c) {
  Value x = array(c);
  int64_t decimals = c.config.integer("decimals", 0);
  if (decimals < -300 || decimals > 300) c.config.invalid("'decimals' is between -300 and 300; got {}", decimals);
  if (!is_float(x.dtype()) && decimals >= 0) return x;
  DType dtype = float_type(x.dtype());
  Value scaled = convert(x, dtype);
  if (decimals == 0) return unary(Op::round_nearest_even, scaled);
  // Rounding in 16 bits would lose what the factor gains.
  if (byte_size(dtype) == 2) scaled = convert(scaled, DType::f32);
  double factor = std::pow(10.0, static_cast<double>(decimals));
  return convert(unary(Op::round_nearest_even, scaled * factor) / factor, x.dtype());
}

Outputs nan_to_num(Call& c) {
  Value x = array(c);
  if (!is_float(x.dtype())) return x;
  auto replace = [&](Value where, std::string_view key, double otherwise) {
    x = select(where, full_like(x, c.config.number(key, otherwise)), x);
  };
  Value is_not_a_number = is_nan(x), above = positive_infinite(x), below = negative_infinite(x);
  // Conversion to the dtype would turn a larger one's limit into infinity.
  double largest = x.dtype() == DType::f16    ? 65504.0
                   : x.dtype() == DType::bf16 ? 0x1.FEp127
                   : x.dtype() == DType::f32  ? static_cast<double>(std::numeric_limits<float>::max())
                                              : std::numeric_limits<double>::max();
  replace(is_not_a_number, "nan", 0);
  replace(above, "posinf", largest);
  replace(below, "neginf", -largest);
  return x;
}

Outputs clip(Call& c) {
  Operand x = operand(c, 0, "x");
  std::vector<PromotedType> types{x.type().dtype == DType::boolean ? PromotedType(DType::i32) : x.type()};
  for (std::string_view key : {"x_min", "x_max"}) {
    const Json& bound = c.config.get(key);
    if (bound.is_null()) continue;
    if (!bound.is_number() && !bound.is_bool()) c.config.invalid("'{}' is a number; got {}", key, bound.dump());
    if (bound.is_number()) types.push_back(bound.is_int() ? python_int : python_float);
  }
  Value y = x.as(result_type(types));
  const auto bound = [&](std::string_view key) { return scalar(y.graph(), y.dtype(), c.config.number(key)); };
  if (c.config.has("x_min")) y = extreme(c, Op::maximum, y, bound("x_min"));
  if (c.config.has("x_max")) y = extreme(c, Op::minimum, y, bound("x_max"));
  return y;
}

Outputs cast(Call& c) { return convert(array(c), dtype_option(c.config, DType::f32)); }

// Beyond the range of the target, its nearest value.
Outputs saturate_cast(Call& c) {
  Value x = array(c);
  DType to = dtype_option(c.config, DType::f32);
  if (is_float(to) && is_float(x.dtype())) {
    double largest = to == DType::f16 ? 65504.0 : to == DType::bf16 ? 0x1.FEp127 : std::numeric_limits<float>::max();
    return convert(byte_size(to) < byte_size(x.dtype()) || to == DType::f16 ? clamp(x, -largest, largest) : x, to);
  }
  if (to == DType::boolean && x.dtype() != to) return convert(clamp(x, 0, 1), to);
  if (!is_integer(to) || x.dtype() == DType::boolean) return convert(x, to);
  if (is_float(x.dtype())) return convert(x, to);  // conversion from floats saturates
  auto [low, high] = dispatch(to, [](auto zero) {
    using T = decltype(zero);
    return std::pair(static_cast<double>(std::numeric_limits<T>::lowest()), static_cast<double>(std::numeric_limits<T>::max()));
  });
  // As integers wide enough for both; u64 is the one that none is.
  if (x.dtype() == DType::u64 || to == DType::u64) c.config.unsupported("saturate_cast of and to uint64 is not done");
  return convert(clamp(convert(x, DType::i64), low, high), to);
}

Outputs view(Call& c) {
  Value x = array(c);
  DType to = dtype_option(c.config, x.dtype());
  if (to == x.dtype()) return x;
  if (byte_size(to) != byte_size(x.dtype()) || to == DType::boolean || x.dtype() == DType::boolean)
    c.config.unsupported("a view of {} as {} is not done; hint: dtypes of the same size are", name(x.dtype()), name(to));
  return bitcast_convert(x, to);
}

Outputs convert_to_tensor(Call& c) {
  if (c.config.flag("sparse", false) || c.config.flag("ragged", false)) c.config.unsupported("sparse and ragged tensors are not done");
  Value x = array(c);
  return convert(x, dtype_option(c.config, x.dtype()));
}

Value same(Value x) { return x; }
Value negated(Value x) { return -x; }

}  // namespace

Rows unary_operations() {
  static const LayerRow rows[] = {
      operation("Abs", on_any<magnitude>),
      operation("Absolute", on_any<magnitude>),
      operation("Angle", on_float<angle>),
      operation("Arccos", on_float<apply<Op::acos>>),
      operation("Arccosh", on_float<apply<Op::acosh>>),
      operation("Arcsin", on_float<apply<Op::asin>>),
      operation("Arcsinh", on_float<apply<Op::asinh>>),
      operation("Arctan", on_float<apply<Op::atan>>),
      operation("Arctanh", on_float<apply<Op::atanh>>),
      operation("Array", convert_to_tensor),
      operation("BitwiseInvert", on_any<apply<Op::not_>>),
      operation("BitwiseNot", on_any<apply<Op::not_>>),
      operation("Cast", cast),
      operation("Cbrt", on_wide_float<apply<Op::cbrt>>),
      operation("Ceil", on_float<apply<Op::ceil>>),
      operation("Clip", clip, "x_min x_max"),
      operation("Conj", on_any<same>),
      operation("Conjugate", on_any<same>),
      operation("ConvertToTensor", convert_to_tensor, "sparse ragged", "sparse and ragged tensors are refused"),
      operation("Copy", on_any<same>),
      operation("Cos", on_float<apply<Op::cosine>>),
      operation("Cosh", on_float<apply<Op::cosh>>),
      operation("Deg2rad", on_wide_float<radians>),
      operation("Erf", on_float_only<erf>),
      operation("Erfc", on_float<erfc>),
      operation("Erfinv", on_float_only<apply<Op::erf_inv>>),
      operation("Exp", on_float<exponential>),
      operation("Exp2", on_float<exp2>),
      operation("Expm1", on_float<exponential_minus_one>),
      operation("Fabs", on_float<abs>),
      operation("Floor", on_float<floor>),
      operation("I0", on_wide_float<bessel_i0>),
      operation("Imag", on_any<zeros_like>),
      operation("Isfinite", on_any<finite>),
      operation("Isinf", on_any<infinite>),
      operation("Isnan", on_any<nan>),
      operation("Isneginf", on_any<negative_infinite>),
      operation("Isposinf", on_any<positive_infinite>),
      operation("Isreal", on_any<real>),
      operation("Log", on_float<log>),
      operation("Log10", on_float<log10>),
      operation("Log1p", on_float<log_plus_one>),
      operation("Log2", on_float<log2>),
      operation("LogicalNot", on_any<logical_negation>),
      operation("NanToNum", nan_to_num, "nan posinf neginf"),
      operation("Negative", on_any<negated>),
      operation("Rad2deg", on_wide_float<degrees>),
      operation("Real", on_any<same>),
      operation("Reciprocal", on_float<reciprocal>),
      operation("Round", round, "decimals"),
      operation("Rsqrt", on_float_only<rsqrt>),
      operation("SaturateCast", saturate_cast, "", "of and to uint64 is refused"),
      operation("Sign", on_any<sign_of>),
      operation("Signbit", on_any<signbit>),
      operation("Sin", on_float<apply<Op::sine>>),
      operation("Sinc", on_float<sinc>),
      operation("Sinh", on_float<apply<Op::sinh>>),
      operation("Sqrt", on_float<sqrt>),
      operation("Square", on_any<squared>),
      operation("StopGradient", on_any<stop_gradient>),
      operation("Tan", on_float<apply<Op::tan>>),
      operation("Tanh", on_float<tanh>),
      operation("Trunc", on_any<truncate>),
      operation("View", view, "", "dtypes of different sizes are refused"),
  };
  return rows;
}

}  // namespace tutti::keras
