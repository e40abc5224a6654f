// The nodes that place each element of their operands by types and attributes alone, as copies, to be made one after another.
#pragma once

#include <vector>

#include "tutti/device/kernel.h"
#include "tutti/device/reference/strided_copy.h"

namespace tutti::reference {

struct Move {
  StridedCopy copy;
  size_t operand;
  int64_t from, to;  // bytes into the operand and into the result
};
using Moves = std::vector<Move>;

// Of broadcast_in_dim, transpose, slice, reverse, pad and concatenate; none of any other node.
Moves moves_of(const Graph& graph, const Node& node);

}  // namespace tutti::reference
