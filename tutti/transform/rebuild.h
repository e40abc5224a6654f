// What passes are written with: a graph copied node by node, with room to do otherwise at any of them; and questions about nodes.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

inline bool all_are(const Ints& list, int64_t wanted) {
  return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == wanted; });
}

class Rebuild {
 public:
  explicit Rebuild(const Graph& from);

  const Graph& from() const { return from_; }
  Graph& graph() { return to_; }
  // What stands for a value of the old graph; empty before it is mapped.
  Value operator[](ValueId old) const { return values_[static_cast<size_t>(old)]; }
  std::vector<Value> operands(const Node& node) const;
  // What was made since the last one comes from where the old value does.
  void map(ValueId old, Value value);
  // The same node on the new operands, with another body if one is given.
  void copy(const Node& node, std::shared_ptr<const Graph> body = nullptr);
  // The new graph, with outputs and updates; this object is used up.
  Graph finish();

 private:
  const Graph& from_;
  Graph to_;
  std::vector<Value> values_;
  size_t mapped_ = 0;  // nodes of the new graph
};

// A pass that rewrites scans: their bodies go through it first, and then rewrite(rebuild, scan) makes or copies each.
template <class Rewrite>
Graph rewrite_scans(const Graph& graph, Graph (*pass)(const Graph&), const Rewrite& rewrite) {
  Rebuild rebuild(graph);
  for (const Node& node : graph.nodes()) {
    if (!node.body) {
      rebuild.copy(node);
      continue;
    }
    Node inner = node;
    inner.body = std::make_shared<const Graph>(pass(*node.body));
    rewrite(rebuild, inner);
  }
  return rebuild.finish();
}

// The node that made a value. Adding nodes to the graph moves nodes: copy what is needed from it before.
inline const Node& made_by(Value value) { return value.graph().maker(value.id()); }

// How often each value is read: by nodes, outputs and updates.
std::vector<int> count_uses(const Graph& graph);

// Whether two graphs are equal node by node; literals are compared by where their bytes lie, and if they are small by their bytes.
bool same_graph(const Graph& a, const Graph& b);
bool same_literal(const Tensor& a, const Tensor& b);

// A constant, or a weight whose data is there.
bool is_constant_leaf(const Node& node);
// Such a leaf, or a reshape of one.
bool is_plain_constant(Value value);

// The one number that all elements of a value are, when it is made of a constant of one element by broadcasts and reshapes.
std::optional<double> splat(const Graph& graph, ValueId id);
inline std::optional<double> splat(Value value) { return splat(value.graph(), value.id()); }

// Whether no element of a floating-point value can be negative or -0 (NaN is possible), as far as a short look can tell.
bool never_negative(Value value);

// The axes whose extent is not 1, and the shape without the others.
Ints axes_not_one(const Shape& shape);
Shape squeezed(const Shape& shape);

}  // namespace tutti
