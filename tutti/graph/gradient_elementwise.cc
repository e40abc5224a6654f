// Gradient rules of elementwise ops. g is the cotangent of the result y; operands and results have one shape.
#include <cmath>
#include <numbers>

#include "tutti/graph/build.h"
#include "tutti/graph/compose.h"
#include "tutti/graph/gradient.h"

namespace tutti::gradient_rules {

namespace {

// `values` where the predicate holds, else 0.
Value where_true(Value predicate, Value values) { return select(predicate, values, scalar(values.graph(), values.dtype(), 0)); }
Value where_false(Value predicate, Value values) { return select(predicate, scalar(values.graph(), values.dtype(), 0), values); }

// Gives each side of a two-operand op its cotangent, computing what is wanted only.
template <class Left, class Right>
Cotangents sides(const GradientNode& n, Left left, Right right) {
  return {n.wanted[0] ? left() : Value(), n.wanted[1] ? right() : Value()};
}

}  // namespace

// At 0 the slope is 1, as JAX has it: an L1 regularizer moves weights that begin with 0.
Cotangents abs(const GradientNode& n) { return {select(compare(n.x(), 0, Direction::GE), n.g(), -n.g())}; }
Cotangents negate(const GradientNode& n) { return {-n.g()}; }
// Of a softmax, what the rule of its quotient gives is divided by the sum: the powers are instead, which the softmax has done already.
Cotangents exponential(const GradientNode& n) {
  const Node& made = n.graph.maker(n.g().id());
  if (made.op != Op::divide) return {n.g() * n.y()};
  const Value numerator{&n.graph, made.operands[0]}, sums{&n.graph, made.operands[1]};
  return {is_own_sum(sums, n.y()) ? numerator * (n.y() / sums) : n.g() * n.y()};
}
Cotangents exponential_minus_one(const GradientNode& n) { return {n.g() * (n.y() + 1)}; }
Cotangents log(const GradientNode& n) { return {n.g() / n.x()}; }
Cotangents log_plus_one(const GradientNode& n) { return {n.g() / (n.x() + 1)}; }
Cotangents logistic(const GradientNode& n) { return {n.g() * n.y() * (1 - n.y())}; }
Cotangents sqrt(const GradientNode& n) { return {n.g() * 0.5 / n.y()}; }
Cotangents rsqrt(const GradientNode& n) { return {n.g() * -0.5 * n.y() / n.x()}; }
Cotangents cbrt(const GradientNode& n) { return {n.g() * (1.0 / 3) * n.y() / n.x()}; }
Cotangents sine(const GradientNode& n) { return {n.g() * unary(Op::cosine, n.x())}; }
Cotangents cosine(const GradientNode& n) { return {-(n.g() * unary(Op::sine, n.x()))}; }
Cotangents tan(const GradientNode& n) { return {n.g() * (square(n.y()) + 1)}; }
Cotangents tanh(const GradientNode& n) { return {n.g() * (1 - square(n.y()))}; }
Cotangents asin(const GradientNode& n) { return {n.g() * tutti::rsqrt(1 - square(n.x()))}; }
Cotangents acos(const GradientNode& n) { return {-(n.g() * tutti::rsqrt(1 - square(n.x())))}; }
Cotangents atan(const GradientNode& n) { return {n.g() / (square(n.x()) + 1)}; }
Cotangents sinh(const GradientNode& n) { return {n.g() * unary(Op::cosh, n.x())}; }
Cotangents cosh(const GradientNode& n) { return {n.g() * unary(Op::sinh, n.x())}; }
Cotangents asinh(const GradientNode& n) { return {n.g() * tutti::rsqrt(square(n.x()) + 1)}; }
Cotangents acosh(const GradientNode& n) { return {n.g() * tutti::rsqrt(n.x() - 1) * tutti::rsqrt(n.x() + 1)}; }
Cotangents atanh(const GradientNode& n) { return {n.g() / (1 - square(n.x()))}; }
Cotangents erf(const GradientNode& n) { return {n.g() * tutti::exponential(-square(n.x())) * (2 / std::sqrt(std::numbers::pi))}; }
Cotangents erf_inv(const GradientNode& n) { return {n.g() * tutti::exponential(square(n.y())) * (std::sqrt(std::numbers::pi) / 2)}; }
Cotangents converted(const GradientNode& n) { return {convert(n.g(), n.x().dtype())}; }

Cotangents add(const GradientNode& n) { return {n.g(), n.g()}; }

Cotangents subtract(const GradientNode& n) {
  return sides(
      n, [&] { return n.g(); }, [&] { return -n.g(); });
}

Cotangents multiply(const GradientNode& n) {
  return sides(
      n, [&] { return n.g() * n.x(1); }, [&] { return n.g() * n.x(0); });
}

Cotangents divide(const GradientNode& n) {
  if (n.wanted[0] && n.wanted[1] && is_own_sum(n.x(1), n.x(0))) {  // both ways at once
    const Node& sums = n.graph.maker(n.graph.maker(n.x(1).id()).operands[0]);
    const Node& reduced = sums.op == Op::reshape ? n.graph.maker(sums.operands[0]) : sums;
    const Value along = sum(n.g() * n.y(), reduced.attributes.ints("dimensions"), true);
    return {(n.g() - along) / n.x(1), {}};
  }
  return sides(
      n, [&] { return n.g() / n.x(1); }, [&] { return -(n.g() / n.x(1) * n.y()); });
}

Cotangents remainder(const GradientNode& n) {
  const auto whole = [&] {
    const Value quotient = n.x(0) / n.x(1);
    return sign(quotient) * floor(tutti::abs(quotient));
  };
  return sides(
      n, [&] { return n.g(); }, [&] { return -(n.g() * whole()); });
}

// The result is compared and not the first operand, which so need not be kept: a relu is known by what it gave.
Cotangents maximum(const GradientNode& n) {
  const Value first = compare(n.y(), n.x(1), Direction::GT);
  return sides(
      n, [&] { return where_true(first, n.g()); }, [&] { return where_false(first, n.g()); });
}

Cotangents minimum(const GradientNode& n) {
  const Value first = compare(n.y(), n.x(1), Direction::LT);
  return sides(
      n, [&] { return where_true(first, n.g()); }, [&] { return where_false(first, n.g()); });
}

Cotangents power(const GradientNode& n) {
  const auto by_base = [&] {
    const Value is_zero = compare(n.x(1), 0, Direction::EQ);  // then nothing flows, whatever 0^-1 is
    const Value lower = select(is_zero, scalar(n.graph, n.x(1).dtype(), 1), n.x(1) - 1);
    return where_false(is_zero, n.g() * n.x(1) * tutti::power(n.x(0), lower));
  };
  const auto by_exponent = [&] {
    const Value is_zero = compare(n.x(0), 0, Direction::EQ);
    return n.g() * n.y() * tutti::log(select(is_zero, scalar(n.graph, n.x(0).dtype(), 1), n.x(0)));
  };
  return sides(n, by_base, by_exponent);
}

Cotangents atan2(const GradientNode& n) {
  const Value scaled = n.g() / (square(n.x(0)) + square(n.x(1)));
  return sides(
      n, [&] { return scaled * n.x(1); }, [&] { return -(scaled * n.x(0)); });
}

Cotangents selected(const GradientNode& n) {
  return {{}, n.wanted[1] ? where_true(n.x(0), n.g()) : Value(), n.wanted[2] ? where_false(n.x(0), n.g()) : Value()};
}

}  // namespace tutti::gradient_rules
