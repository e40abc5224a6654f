// Elementwise nodes that share one iteration space, as one kernel: it goes through the space block by block, and what the nodes hand to
// each other stays in L1.
#pragma once

#include "tutti/device/kernel.h"

namespace tutti::cpu {

// Whether a node may stand in a fused loop: elementwise, or a broadcast that feeds one that is.
bool is_fusible(const Node& node);

// The nodes in topological order; the elementwise ones have results of one shape. Their operands are made by other nodes of the loop, named
// in `operands`, or constants. Broadcasts repeat operands or constants. `results` are made by elementwise nodes; the last node's may lie on
// an operand of the same type that is not repeated, if it is the only one.
Kernel make_fused_loop(const Graph& graph, std::span<const Node* const> nodes, std::span<const ValueId> operands,
                       std::span<const ValueId> results, int threads);

}  // namespace tutti::cpu
