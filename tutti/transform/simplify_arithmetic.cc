// Elementwise rules. Each holds for NaN, infinities and both zeros: x + 0 is not x when x is -0, but x + -0 and x - 0 are.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tutti/transform/simplify.h"

namespace tutti {

namespace {

bool is_number(Value value, double number) {
  auto found = splat(value);
  return found && *found == number && std::signbit(*found) == std::signbit(number);
}

// Zero as the neutral element of an addition.
bool adds_nothing(Value value) { return is_number(value, is_float(value.dtype()) ? -0.0 : 0.0); }

// Constants stand on the right, where whoever looks for them finds them.
Value constant_to_the_right(Simplifier& to, const Candidate& node) {
  auto constant = [](Value value) {
    Value source = operand_of(value, Op::broadcast_in_dim);
    return is_plain_constant(source ? source : value);
  };
  return constant(node[0]) && !constant(node[1]) ? to.make(node.op, {node[1], node[0]}) : Value();
}

Value add(Simplifier& to, const Candidate& node) {
  return adds_nothing(node[0]) ? node[1] : adds_nothing(node[1]) ? node[0] : constant_to_the_right(to, node);
}

Value subtract(Simplifier&, const Candidate& node) { return is_number(node[1], 0) ? node[0] : Value(); }

Value multiply(Simplifier& to, const Candidate& node) {
  return is_number(node[0], 1) ? node[1] : is_number(node[1], 1) ? node[0] : constant_to_the_right(to, node);
}

// A power of two has an exact inverse, and both roundings are of the same number. The inverse must be a normal number.
Value divide(Simplifier& to, const Candidate& node) {
  if (is_number(node[1], 1)) return node[0];
  auto divisor = splat(node[1]);
  if (!is_float(node[1].dtype()) || !divisor) return {};
  int exponent = 0;
  const int limit = node[1].dtype() == DType::f16 ? 14 : 126;
  if (std::abs(std::frexp(*divisor, &exponent)) != 0.5 || std::abs(exponent - 1) > limit) return {};
  return to.make(Op::multiply, {node[0], to.full_like(node[1], 1 / *divisor)});
}

// C's pow: pow(-0, 0.5) is 0 and pow(-inf, 0.5) is inf, where sqrt gives -0 and NaN.
Value power(Simplifier& to, const Candidate& node) {
  if (!is_float(node[0].dtype())) return {};
  if (is_number(node[1], 1)) return node[0];
  if (is_number(node[1], 2)) return to.make(Op::multiply, {node[0], node[0]});
  if (is_number(node[1], 0.5) && never_negative(node[0])) return to.make(Op::sqrt, {node[0]});
  if (is_number(node[1], -0.5) && never_negative(node[0])) return to.make(Op::rsqrt, {node[0]});
  return {};
}

// The bound that every number is within, where NaN stays NaN; and a bound that holds already.
template <int sign>
Value bound(Simplifier&, const Candidate& node) {
  for (size_t i : {0, 1})
    if (made_by(node[i]).op == node.op && made_by(node[i]).operands[1] == node[1 - i].id()) return node[i];
  if (!is_float(node[0].dtype())) return {};
  constexpr double nothing = sign * std::numeric_limits<double>::infinity();
  return is_number(node[0], nothing) ? node[1] : is_number(node[1], nothing) ? node[0] : Value();
}

// Of bool: `neutral` leaves the other operand, its opposite decides.
template <bool neutral>
Value logical(Simplifier&, const Candidate& node) {
  if (node[0].dtype() != DType::boolean) return {};
  for (size_t i : {0, 1})
    if (auto known = splat(node[i])) return (*known != 0) == neutral ? node[1 - i] : node[i];
  return node[0].id() == node[1].id() ? node[0] : Value();
}

// f(f(x)) = x
Value involution(Simplifier&, const Candidate& node) { return operand_of(node[0], node.op); }

Value select(Simplifier& to, const Candidate& node) {
  if (auto known = splat(node[0])) return *known != 0 ? node[1] : node[2];
  if (node[1].id() == node[2].id()) return node[1];
  if (Value opposite = operand_of(node[0], Op::not_)) return to.make(Op::select, {opposite, node[2], node[1]});
  return {};
}

// Whether every number of a dtype is one of the other.
bool widens(DType from, DType to) {
  if (from == DType::boolean) return true;
  if (is_float(from)) return to == DType::f64 || (to == DType::f32 && from != DType::f64);
  return is_integer(to) && is_signed(from) == is_signed(to) && byte_size(from) < byte_size(to);
}

Value convert(Simplifier&, const Candidate& node) {
  DType target = *dtype_from_name(node.attributes.text("dtype"));
  if (node[0].dtype() == target) return node[0];
  Value origin = operand_of(node[0], Op::convert);
  return origin && origin.dtype() == target && widens(target, node[0].dtype()) ? origin : Value();
}

Value bitcast_convert(Simplifier&, const Candidate& node) {
  return node.attributes.text("dtype") == name(node[0].dtype()) ? node[0] : Value();
}

}  // namespace

std::span<const RuleRow> arithmetic_rules() {
  static constexpr RuleRow rows[] = {
      {Op::add, add},
      {Op::subtract, subtract},
      {Op::multiply, multiply},
      {Op::divide, divide},
      {Op::power, power},
      {Op::maximum, bound<-1>},
      {Op::minimum, bound<1>},
      {Op::and_, logical<true>},
      {Op::or_, logical<false>},
      {Op::negate, involution},
      {Op::not_, involution},
      {Op::select, select},
      {Op::convert, convert},
      {Op::bitcast_convert, bitcast_convert},
  };
  return rows;
}

// op(broadcast(a), broadcast(b)) = broadcast(op(a, b)) when both are broadcast the same way; a broadcast scalar fits any way.
Value lift_broadcasts(Simplifier& to, const Candidate& node) {
  Value wide;  // an operand that is a broadcast, if possible of more than a scalar
  for (Value operand : node.operands) {
    Value source = operand_of(operand, Op::broadcast_in_dim);
    if (!source) return {};
    if (!wide || source.rank() != 0) wide = operand;
  }
  const Shape shape = wide.shape(), small = operand_of(wide, Op::broadcast_in_dim).shape();
  const Ints dimensions = made_by(wide).attributes.ints("dimensions");
  std::vector<Value> sources;
  for (Value operand : node.operands) {
    Value source = operand_of(operand, Op::broadcast_in_dim);
    if (source.rank() != 0 && (!(source.shape() == small) || made_by(operand).attributes.ints("dimensions") != dimensions)) return {};
    sources.push_back(source);
  }
  for (Value& source : sources)
    if (source.rank() == 0 && small.rank() != 0) source = to.broadcast(source, small, {});
  Value result = to.make(node.op, sources, node.attributes);
  return to.broadcast(result, shape, dimensions);
}

// op(reshape(a), reshape(b)) = reshape(op(a, b)) when both come from one shape; numbers fit any.
Value lift_reshapes(Simplifier& to, const Candidate& node) {
  Value source;
  for (Value operand : node.operands) {
    Value inner = operand_of(operand, Op::reshape);
    if (is_plain_constant(operand) || (!inner && !splat(operand))) return {};
    if (inner && source && !(inner.shape() == source.shape())) return {};
    if (inner) source = inner;
  }
  if (!source) return {};
  const Shape shape = node[0].shape(), inside = source.shape();
  std::vector<Value> operands;
  for (Value operand : node.operands) operands.push_back(to.reshape(operand, inside));
  Value result = to.make(node.op, operands, node.attributes);
  return to.reshape(result, shape);
}

// op(transpose(a), transpose(b)) = transpose(op(a, b)), and broadcasts are made in the other order at once: transposes around convolutions
// meet each other and go. Not when a broadcast value itself would have to be transposed.
Value lift_transposes(Simplifier& to, const Candidate& node) {
  Value transposed;
  for (Value operand : node.operands)
    if (made_by(operand).op == Op::transpose) transposed = operand;
  if (!transposed) return {};
  const Ints permutation = made_by(transposed).attributes.ints("permutation");
  for (Value operand : node.operands) {
    const Node& made = made_by(operand);
    if (made.op == Op::transpose && made.attributes.ints("permutation") == permutation) continue;
    if (made.op != Op::broadcast_in_dim) return {};
    Ints places;
    for (int64_t axis : made.attributes.ints("dimensions")) places.push_back(permutation[static_cast<size_t>(axis)]);
    if (!std::is_sorted(places.begin(), places.end())) return {};
  }
  const Ints inverse = inverse_of(permutation);
  std::vector<Value> operands;
  for (Value operand : node.operands) operands.push_back(to.transpose(operand, inverse));
  Value result = to.make(node.op, operands, node.attributes);
  return to.transpose(result, permutation);
}

// A constant operand with axes of extent 1 is broadcast from one without, as it is at other batch sizes.
Value squeeze_constants(Simplifier& to, const Candidate& node) {
  if (std::all_of(node.operands.begin(), node.operands.end(), is_plain_constant)) return {};  // will be folded
  std::vector<Value> operands = node.operands;
  bool changed = false;
  for (Value& operand : operands) {
    const Shape shape = operand.shape();
    if (squeezed(shape).rank() == shape.rank() || !is_plain_constant(operand)) continue;
    operand = to.broadcast(to.reshape(operand, squeezed(shape)), shape, axes_not_one(shape));
    changed = true;
  }
  return changed ? to.make(node.op, operands, node.attributes) : Value();
}

}  // namespace tutti
