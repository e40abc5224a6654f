// What running a node costs, counted from its types alone.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti {

struct Cost {
  // dot_general and convolution: two for each multiplication and addition, padding counted as if it were data; reductions: one for each
  // element read; elementwise ops: one for each element made, however transcendental; moving data: none. scan: its body, `length` times.
  int64_t flops = 0;
  int64_t bytes = 0;  // operands read and results written once, if nothing were cached; views cost nothing
};

// Sums beyond int64 stay at its maximum.
Cost cost(const Graph& graph, const Node& node);
Cost cost(const Graph& graph);

// What the node reads of an operand: all, but of slices and gathers what they take.
int64_t bytes_read(const Graph& graph, const Node& node, size_t operand);

// Bytes of the graph's weights and states.
int64_t weight_bytes(const Graph& graph);

}  // namespace tutti
