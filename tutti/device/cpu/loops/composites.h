// Neighbouring nodes of a fused loop that one micro-op does at once: activations, multiply-add, what optimizers are made of.
#pragma once

#include <optional>
#include <set>
#include <span>

#include "tutti/device/cpu/simd/micro_ops.h"

namespace tutti::cpu {

struct FoundComposite {
  Composite composite;
  std::vector<ValueId> operands;
  std::vector<const Node*> inside;  // nodes that it stands for, but the last
};

// Of a loop's elementwise nodes; `results` are read outside of it.
class CompositeFinder {
 public:
  CompositeFinder(const Graph& graph, std::span<const Node* const> elementwise, std::span<const ValueId> results);
  // What ends in this node, the larger first.
  std::vector<FoundComposite> find(const Node& node) const;

 private:
  using Found = std::optional<FoundComposite>;
  // The node of the loop that makes a value which nobody else reads, if it is of that op.
  const Node* inner(Op op, ValueId id) const;
  // The number that every element is, or NaN.
  float number(ValueId id) const;
  Found multiply_add(const Node& sum) const;
  Found toward(const Node& sum) const;
  Found minus_quotient(const Node& node) const;
  Found root_plus(const Node& sum) const;
  // Either side of the product may be the factor that is one number for all.
  Found descent(const Node& node, size_t factor) const;
  Found relu(const Node& node) const;
  Found gated(const Node& product) const;
  Found gated_sum(const Node& sum) const;
  Found silu(const Node& node) const;
  Found gelu(const Node& node) const;
  Found hard_silu(const Node& node) const;
  Found leaky_relu(const Node& node) const;

  const Graph& graph_;
  std::set<const Node*> nodes_;
  std::multiset<ValueId> reads_;  // one for each time a node reads it; two for results
};

}  // namespace tutti::cpu
