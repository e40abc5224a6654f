// Elementwise nodes that share one iteration space, as one kernel: it goes through the space block by block, and what the nodes hand to
// each other stays in L1.
#pragma once

#include <functional>

#include "tutti/device/kernel.h"

namespace tutti::cpu {

// Whether a node may be computed by a fused loop.
bool is_fusible(const Node& node);
// Whether there is vector code for a fusible node; without it the loop computes the node's blocks with the reference kernel.
bool has_vector_code(const Graph& graph, const Node& node);

// The nodes in topological order; the fusible ones have results of one shape. Their operands are made by other nodes of the loop, named in
// `operands`, or constants, perhaps behind nodes that are looked through. `results` are made by fusible nodes; a single one may lie on an
// operand of the same type that is read at its own place only. `threads` is told how many elements all passes over a block go through
// together: what one pass does of several nodes counts once.
Kernel make_fused_loop(const Graph& graph, std::span<const Node* const> nodes, std::span<const ValueId> operands,
                       std::span<const ValueId> results, const std::function<int(int64_t elements)>& threads);

}  // namespace tutti::cpu
