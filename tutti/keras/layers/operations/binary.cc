// keras.ops on the elements of two tensors that broadcast: arithmetic, comparison, logic, bits.
#include <limits>
#include <numbers>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/extreme.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

using Binary = Value (*)(Value, Value);

struct Operands {
  Operand a, b;
};
Operands pair(Call& c, std::string_view first = "x1", std::string_view second = "x2") {
  return {operand(c, 0, first), operand(c, 1, second)};
}

template <Binary f>
Outputs in(Call&, const Operands& p, DType dtype) {
  return f(p.a.as(dtype), p.b.as(dtype));
}

// In the dtype that both are promoted to.
template <Binary f>
Outputs on_pair(Call& c) {
  Operands p = pair(c);
  return in<f>(c, p, result_type(p.a, p.b));
}
// The same, but bool counts as int32.
template <Binary f>
Outputs on_numbers(Call& c) {
  Operands p = pair(c);
  DType dtype = result_type(p.a, p.b);
  return in<f>(c, p, dtype == DType::boolean ? DType::i32 : dtype);
}
template <Binary f>
Outputs on_floats(Call& c) {
  Operands p = pair(c);
  return in<f>(c, p, result_type(p.a, p.b, python_float));
}
template <Binary f>
Outputs on_booleans(Call& c) {
  return in<f>(c, pair(c), DType::boolean);
}
template <Direction direction>
Outputs comparison(Call& c) {
  Operands p = pair(c);
  DType dtype = result_type(p.a, p.b);
  return compare(p.a.as(dtype), p.b.as(dtype), direction);
}
template <Binary f>
Outputs on_bits(Call& c) {
  Operands p = pair(c, "x", "y");
  return in<f>(c, p, result_type(p.a, p.b));
}
template <Binary f>
Outputs shifted(Call& c) {
  Operands p = pair(c, "x", "y");
  DType dtype = result_type(p.a, p.b);
  return in<f>(c, p, dtype == DType::boolean ? DType::i32 : dtype);
}
template <Op op>
Value apply2(Value a, Value b) {
  return binary(op, a, b);
}

template <Op op>
Outputs extreme_of_pair(Call& c) {
  Operands p = pair(c);
  DType dtype = result_type(p.a, p.b);
  return extreme(c, op, p.a.as(dtype), p.b.as(dtype));
}

Value is_negative(Value x) { return is_signed(x.dtype()) ? compare(x, 0, Direction::LT) : compare(x, x, Direction::NE); }
Value differ(Value a, Value b) { return compare(a, b, Direction::NE); }

// Rounds towards minus infinity: a remainder whose sign is not the divisor's was truncated the other way.
struct FloorDivision {
  Value truncated, off;
};
FloorDivision floor_division(Value a, Value b) {
  Value rest = remainder(a, b);
  return {rest, logical_and(compare(rest, 0, Direction::NE), differ(is_negative(rest), is_negative(b)))};
}
Value modulo(Value a, Value b) {
  auto [rest, off] = floor_division(a, b);
  return select(off, rest + b, rest);
}
Value floor_divide(Value a, Value b) {
  auto [rest, off] = floor_division(a, b);
  if (is_float(a.dtype())) {
    Value quotient = unary(Op::round_nearest_even, (a - rest) / b);
    return select(compare(b, 0, Direction::EQ), a / b, select(off, quotient - 1, quotient));
  }
  Value quotient = a / b;
  return is_signed(a.dtype()) ? select(off, quotient - 1, quotient) : quotient;
}

Value divide_no_nan(Value a, Value b) {
  Value zero = compare(b, 0, Direction::EQ);
  return select(zero, scalar(a.graph(), a.dtype(), 0), a / select(zero, full_like(b, 1), b));
}

// NaN gives way to a number.
template <Binary f>
Value without_nan(Value a, Value b) {
  if (!is_float(a.dtype())) return f(a, b);
  return select(is_nan(a), b, select(is_nan(b), a, f(a, b)));
}

Value heaviside(Value a, Value b) {
  return select(compare(a, 0, Direction::LT), full_like(a, 0), select(compare(a, 0, Direction::GT), full_like(a, 1), b));
}

// Scaled by the larger one, so that squares neither overflow nor vanish.
Value hypot(Value a, Value b) {
  a = abs(a);
  b = abs(b);
  Value large = maximum(a, b), small = minimum(a, b);
  Value ratio = divide_no_nan(small, large);
  const Value of_equal = a * (0.5 * std::numbers::sqrt2) + b * (0.5 * std::numbers::sqrt2);  // both have a gradient
  return select(compare(small, large, Direction::EQ), of_equal, large * sqrt(ratio * ratio + 1));
}

Value logaddexp_in(Value a, Value b, double base_log) {
  Value difference = a - b, nearer = minimum(-difference, difference);  // in this order, equal ones share the gradient
  Value out = maximum(a, b) + log_plus_one(exponential(nearer * base_log)) / base_log;
  return select(is_nan(difference), a + b, out);  // of equal infinities
}
Value logaddexp(Value a, Value b) { return logaddexp_in(a, b, 1); }
Value logaddexp2(Value a, Value b) { return logaddexp_in(a, b, std::numbers::ln2); }

// x * 2^exponent, in two factors: 2^exponent alone may overflow where the product does not.
Outputs ldexp(Call& c) {
  Operands p = pair(c);
  if (!is_integer(p.b.type().dtype)) c.config.invalid("'x2' holds integers");
  DType dtype = result_type(p.a, p.b, python_float);
  Value exponent = p.b.value(), half = binary(Op::shift_right_arithmetic, exponent, full_like(exponent, 1));
  auto factor = [&](Value e) { return power(scalar(c.graph, dtype, 2), convert(e, dtype)); };
  return p.a.as(dtype) * factor(half) * factor(exponent - half);
}

// The next float from a towards b, by its bits: floats of one sign are ordered as their bits are.
Value nextafter(Value a, Value b) {
  bool wide = byte_size(a.dtype()) == 8;
  DType bits = byte_size(a.dtype()) == 2 ? DType::i16 : wide ? DType::i64 : DType::i32;
  Value pattern = bitcast_convert(a, bits);
  Value away = logical_or(logical_and(compare(b, a, Direction::GT), compare(a, 0, Direction::GT)),
                          logical_and(compare(b, a, Direction::LT), compare(a, 0, Direction::LT)));
  Value stepped = bitcast_convert(select(away, pattern + 1, pattern - 1), a.dtype());
  Value tiniest = bitcast_convert(full(a.graph(), {bits, a.shape()}, 1), a.dtype());
  stepped = select(compare(a, 0, Direction::EQ), select(compare(b, 0, Direction::GT), tiniest, -tiniest), stepped);
  stepped = select(compare(a, b, Direction::EQ), b, stepped);
  return select(logical_or(is_nan(a), is_nan(b)), a + b, stepped);
}

Outputs next_after(Call& c) {
  Operands p = pair(c);
  DType dtype = result_type(p.a, p.b, python_float);
  Shape shape = broadcast(p.a.as(dtype).shape(), p.b.as(dtype).shape());
  return nextafter(broadcast_to(p.a.as(dtype), shape), broadcast_to(p.b.as(dtype), shape));
}

// Euclid's algorithm for all elements at once. The longest run, of neighbouring Fibonacci numbers, is 1.45 steps a bit.
Value gcd(Value a, Value b) {
  Shape shape = broadcast(a.shape(), b.shape());
  auto magnitude = [&](Value x) { return broadcast_to(is_signed(x.dtype()) ? abs(x) : x, shape); };
  int64_t steps = byte_size(a.dtype()) * 12 + 2;
  auto result = scan({magnitude(a), magnitude(b)}, {}, {}, steps, false,
                     [](Graph&, std::vector<Value> carries, std::vector<Value>, std::vector<Value>) -> ScanStep {
                       Value x = carries[0], y = carries[1], done = compare(y, 0, Direction::EQ);
                       Value rest = remainder(x, select(done, full_like(y, 1), y));
                       return {{select(done, x, y), select(done, y, rest)}, {}};
                     });
  return result.carries[0];
}

Value lcm(Value a, Value b) {
  Value divisor = gcd(a, b), none = compare(divisor, 0, Direction::EQ);
  Value product = (a / select(none, full_like(divisor, 1), divisor)) * b;
  return is_signed(a.dtype()) ? abs(product) : product;
}

Value is_close(Value a, Value b, Value rtol, Value atol, bool equal_nan) {
  Value finite = logical_and(unary(Op::is_finite, a), unary(Op::is_finite, b));
  Value near = compare(abs(a - b), atol + rtol * abs(b), Direction::LE);
  Value out = select(finite, near, compare(a, b, Direction::EQ));
  return equal_nan ? logical_or(out, logical_and(is_nan(a), is_nan(b))) : out;
}

Outputs isclose(Call& c) {
  Operands p = pair(c);
  DType dtype = result_type(p.a, p.b, python_float);
  auto tolerance = [&](size_t position, std::string_view name, double otherwise) {
    auto given = find_operand(c, position, name);
    return given ? given->as(dtype) : scalar(c.graph, dtype, otherwise);
  };
  return is_close(p.a.as(dtype), p.b.as(dtype), tolerance(2, "rtol", 1e-5), tolerance(3, "atol", 1e-8), c.config.flag("equal_nan", false));
}

Outputs allclose(Call& c) {
  Operands p = pair(c);
  DType dtype = result_type(p.a, p.b, python_float);
  auto tolerance = [&](std::string_view key, double otherwise) { return scalar(c.graph, dtype, c.config.number(key, otherwise)); };
  Value close = is_close(p.a.as(dtype), p.b.as(dtype), tolerance("rtol", 1e-5), tolerance("atol", 1e-8), c.config.flag("equal_nan", false));
  return all(close, all_axes(close));
}

Outputs where_(Call& c) {
  Value condition = operand(c, 0, "condition").as(DType::boolean);
  if (c.arguments.find(1, "x1") == nullptr || c.arguments.find(2, "x2") == nullptr)
    c.config.unsupported("where with a condition alone has a result whose shape depends on the data; hint: give x1 and x2");
  Operand a = operand(c, 1, "x1"), b = operand(c, 2, "x2");
  DType dtype = result_type(a, b);
  return select(condition, a.as(dtype), b.as(dtype));
}

// The choice of the first condition that holds.
Outputs select_(Call& c) {
  auto conditions = operand_list(c, 0, "condlist"), choices = operand_list(c, 1, "choicelist");
  if (conditions.size() != choices.size())
    c.config.invalid("{} conditions choose among {} values; expected as many", conditions.size(), choices.size());
  auto otherwise = find_operand(c, 2, "default");
  choices.push_back(otherwise ? *otherwise : Operand(c.graph, Json(0)));
  auto values = promoted(choices);
  Value out = values.back();
  for (size_t i = conditions.size(); i-- > 0;) out = select(conditions[i].as(DType::boolean), values[i], out);
  return out;
}

Value shift_right(Value a, Value b) { return binary(is_signed(a.dtype()) ? Op::shift_right_arithmetic : Op::shift_right_logical, a, b); }

}  // namespace

Rows binary_operations() {
  static const LayerRow rows[] = {
      operation("Add", on_pair<apply2<Op::add>>),
      operation("AllClose", allclose, "rtol atol equal_nan"),
      operation("Arctan2", on_floats<apply2<Op::atan2>>),
      operation("BitwiseAnd", on_bits<apply2<Op::and_>>),
      operation("BitwiseLeftShift", shifted<apply2<Op::shift_left>>),
      operation("BitwiseOr", on_bits<apply2<Op::or_>>),
      operation("BitwiseRightShift", shifted<shift_right>),
      operation("BitwiseXor", on_bits<apply2<Op::xor_>>),
      operation("Divide", on_floats<apply2<Op::divide>>),
      operation("DivideNoNan", on_floats<divide_no_nan>),
      operation("Equal", comparison<Direction::EQ>),
      operation("FloorDivide", on_numbers<floor_divide>),
      operation("Fmax", on_pair<without_nan<maximum>>),
      operation("Fmin", on_pair<without_nan<minimum>>),
      operation("Fmod", on_numbers<remainder>),
      operation("Gcd", on_pair<gcd>),
      operation("Greater", comparison<Direction::GT>),
      operation("GreaterEqual", comparison<Direction::GE>),
      operation("Heaviside", on_floats<heaviside>),
      operation("Hypot", on_floats<hypot>),
      operation("Isclose", isclose, "equal_nan"),
      operation("Lcm", on_pair<lcm>),
      operation("Ldexp", ldexp),
      operation("LeftShift", shifted<apply2<Op::shift_left>>),
      operation("Less", comparison<Direction::LT>),
      operation("LessEqual", comparison<Direction::LE>),
      operation("Logaddexp", on_floats<logaddexp>),
      operation("Logaddexp2", on_floats<logaddexp2>),
      operation("LogicalAnd", on_booleans<logical_and>),
      operation("LogicalOr", on_booleans<logical_or>),
      operation("LogicalXor", on_booleans<apply2<Op::xor_>>),
      operation("Maximum", extreme_of_pair<Op::maximum>),
      operation("Minimum", extreme_of_pair<Op::minimum>),
      operation("Mod", on_numbers<modulo>),
      operation("Multiply", on_pair<apply2<Op::multiply>>),
      operation("Nextafter", next_after),
      operation("NotEqual", comparison<Direction::NE>),
      operation("Power", on_numbers<power>),
      operation("RightShift", shifted<shift_right>),
      operation("Select", select_),
      operation("Subtract", on_pair<apply2<Op::subtract>>),
      operation("TrueDivide", on_floats<apply2<Op::divide>>),
      operation("Where", where_, "", "a condition alone is refused: the shape of its result depends on the data"),
  };
  return rows;
}

}  // namespace tutti::keras
