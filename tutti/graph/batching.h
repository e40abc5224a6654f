// The batching rules that rows of the op table name: a node of one model, done for many models of the same structure at once. Their axis
// stands first.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti {

struct Batched {
  Value value;
  bool stacked = false;  // has the axis of models; else the value is the same for all of them
};

struct BatchedNode {
  Graph& to;         // being made
  const Node& node;  // of one model
  int64_t models;
  std::vector<Batched> operands;  // in `to`; one or more are stacked

  // The operand with the axis of models, repeated where it has none.
  Value stacked(size_t i) const;
};

// The results, in `node.to`. A node whose operands are the same for all models is made once for all of them.
std::vector<Batched> batch(const BatchedNode& node);

// `x` with an axis of models before its own.
Value repeat_for_models(Value x, int64_t models);

namespace batching_rules {

using Rule = std::vector<Batched>(const BatchedNode&);
Rule leaf, elementwise;
Rule broadcasted, reshaped, transposed, sliced, padded, concatenated, reversed, dynamically_sliced, dynamically_updated, gathered,
    scattered, sorted, summed_by_all;
Rule reduced, windowed, dotted, convolved, scanned;

}  // namespace batching_rules

}  // namespace tutti
