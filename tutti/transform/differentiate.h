// Reverse-mode differentiation of whole graphs; the rules are a column of the op table (graph/gradient.h).
#pragma once

#include "tutti/graph/graph.h"

namespace tutti {

// A graph and what was asked of it. Values of the graph that was given may have moved.
struct Differentiated {
  Graph graph;
  std::vector<ValueId> gradients;  // by value asked for, of its type; zeros where nothing flows
  std::vector<ValueId> values;     // where each value of the given graph is now

  Value gradient(size_t i) { return {&graph, gradients[i]}; }
  Value now(ValueId old) { return {&graph, values[at(old)]}; }
};

// The gradients of `of`, a floating-point scalar, with respect to `by`, appended to the graph; outputs and updates stay. Integers and
// piecewise constant functions stop gradients. Throws Unsupported where a gradient would flow through an op without a rule.
Differentiated differentiate(const Graph& graph, ValueId of, const std::vector<ValueId>& by);

}  // namespace tutti
