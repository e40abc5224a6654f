// The gradient rules that rows of the op table name, and the walk that applies them: from cotangents of a node's results to those of its
// operands. Rules add nodes to the graph they differentiate. Where a function has no derivative they take JAX's choice, except that a tie
// of maximum and minimum belongs to the second operand, which makes maximum(x, 0) the relu of Keras.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti {

// A node that saves more than it did for the sake of its gradient: `with` takes the place of `node`. Its first results are the same.
struct Replacement {
  size_t node, with;
};

struct GradientNode {
  Graph& graph;
  size_t index;  // of the node
  Node node;     // a copy: the graph grows
  std::vector<Value> operands, results;
  std::vector<Value> cotangents;  // by result; at least one is there
  std::vector<bool> wanted;       // by operand; at least one is
  std::vector<Replacement>& replacements;

  Value x(size_t i = 0) const { return operands[i]; }
  Value y() const { return results[0]; }
  Value g() const { return cotangents[0]; }
};

// Cotangents by operand, absent where nothing flows. What is not wanted need not be computed.
using Cotangents = std::vector<Value>;

struct Seed {
  ValueId value;
  Value cotangent;
};
// The cotangents of `wanted`, from those of `seeds`, appended to `graph`; absent where nothing flows. Only nodes that stand in the graph
// already are walked.
Cotangents backpropagate(Graph& graph, const std::vector<Seed>& seeds, const std::vector<ValueId>& wanted,
                         std::vector<Replacement>& replacements);

// The graph with each replacement in its node's place, and where each value is now.
struct Replaced {
  Graph graph;
  std::vector<ValueId> values;  // by value of the given graph
};
Replaced replace(const Graph& graph, const std::vector<Replacement>& replacements);

namespace gradient_rules {

using Rule = Cotangents(const GradientNode&);
Rule none;     // nothing flows: piecewise constant, integers, bits
Rule refused;  // no rule yet; differentiating through it throws Unsupported

Rule abs, negate, exponential, exponential_minus_one, log, log_plus_one, logistic, sqrt, rsqrt, cbrt, sine, cosine, tan, tanh, asin, acos,
    atan, sinh, cosh, asinh, acosh, atanh, erf, erf_inv, converted;
Rule add, subtract, multiply, divide, remainder, maximum, minimum, power, atan2, selected;
Rule broadcasted, reshaped, transposed, sliced, padded, concatenated, reversed, dynamically_sliced, dynamically_updated, gathered,
    scattered, sorted, summed_by_all;
Rule reduced, windowed, dotted, convolved, scanned;

}  // namespace gradient_rules

}  // namespace tutti
