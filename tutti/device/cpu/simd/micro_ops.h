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

}  // namespace tutti::cpu
