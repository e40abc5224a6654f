// Micro-ops: what an elementwise node does to a run of elements. The fused loops are made of them.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti::cpu {

// `count` elements of each operand into the result. The result may lie on an operand whose elements have the same size.
using MicroOp = void (*)(const std::byte* const* operands, std::byte* result, int64_t count);

// The micro-op of a node, or null: the reference device's kernel does the same. Operands named by a bit of `scalars` point at one element
// that stands for all.
MicroOp find_micro_op(const Graph& graph, const Node& node, unsigned scalars = 0);

// The same where the right operand is a known number and there is a simpler way (squares, roots, relu, clamps), or null. The operands stay
// as they are, the number among them. Of floats.
MicroOp find_micro_op_with_constant(Op op, float right);

// Several nodes in one pass over floats. Operands: a, b, c; x; x and b; x and the slope.
enum class Composite {
  multiply_add,       // a * b + c, rounded once where the machine can
  multiply_add_relu,  // max(a * b + c, 0)
  add_relu,           // max(a + b, 0)
  toward,             // a + (b - a) * c: a moving average
  toward_square,      // a + (b * b - a) * c
  minus_quotient,     // a - b / c
  root_plus,          // sqrt(x) + b
  descent,            // a - b * c / (sqrt(x) + e): the last of an adaptive step; operands a, b, x, c, e
  gated_sum,          // logistic(a) * b + logistic(c) * tanh(d): an LSTM's cell
  gated_tanh,         // logistic(a) * tanh(b)
  gated,              // logistic(a) * b
  silu,               // x * logistic(x)
  gelu,               // x / 2 * (1 + erf(x / sqrt 2))
  hard_silu,          // x * (min(max(x + 3, 0), 6) / 6)
  leaky_relu,         // x >= 0 ? x : x * slope
};
// Null where it is not made for such scalars.
MicroOp find_composite(Composite composite, unsigned scalars);

}  // namespace tutti::cpu
