#include <algorithm>
#include <map>

#include "tutti/graph/compose.h"
#include "tutti/transform/passes.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

// Finds sums in which one value is multiplied by several constant matrices: x A + x B = x (A + B). The mean of linear models is such a sum.
class SumFinder {
 public:
  explicit SumFinder(const Graph& graph) : graph_(graph), uses_(count_uses(graph)) {}

  // What the node adds up, each of the type of its result; none when it is no sum, or only a part of one.
  std::vector<ValueId> terms(const Node& node) const {
    std::vector<ValueId> out;
    if (node.op == Op::add) {
      for (ValueId id : node.operands) collect(id, out);
    } else if (node.op == Op::reduce && node.attributes.text("kind") == "add" && node.attributes.ints("dimensions") == Ints{0}) {
      const Node& parts = graph_.maker(node.operands[0]);
      if (parts.op != Op::concatenate || parts.attributes.integer("dimension") != 0 || uses(node.operands[0]) != 1) return {};
      for (ValueId id : parts.operands) {
        if (graph_.type(id).shape[0] != 1 || uses(id) != 1) return {};
        const Node& reshaped = graph_.maker(id);
        if (reshaped.op != Op::reshape || !(graph_.type(reshaped.operands[0]) == graph_.type(node.results[0]))) return {};
        collect(reshaped.operands[0], out);
      }
    }
    return out;
  }

  // Whether a term is a product with a constant matrix that nobody else reads.
  bool is_product(ValueId id) const {
    const Node& node = graph_.maker(id);
    return node.op == Op::dot_general && uses(id) == 1 && is_constant_leaf(graph_.maker(node.operands[1]));
  }
  // Whether two such products have all but the matrix in common.
  bool goes_with(ValueId a, ValueId b) const {
    const Node &one = graph_.maker(a), &other = graph_.maker(b);
    return one.operands[0] == other.operands[0] && one.attributes == other.attributes &&
           graph_.type(one.operands[1]) == graph_.type(other.operands[1]);
  }

 private:
  int uses(ValueId id) const { return uses_[at(id)]; }

  void collect(ValueId first, std::vector<ValueId>& out) const {
    std::vector<ValueId> open{first};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (const Node& node = graph_.maker(id); node.op == Op::add && uses(id) == 1)
        open.insert(open.end(), node.operands.rbegin(), node.operands.rend());
      else
        out.push_back(id);
    }
  }

  const Graph& graph_;
  std::vector<int> uses_;
};

// Products with the same left side as one; then what is left. Nothing when no two go together.
Value joined(Rebuild& rebuild, const SumFinder& finder, const std::vector<ValueId>& terms) {
  std::vector<std::vector<ValueId>> products;
  std::vector<ValueId> others;
  for (ValueId term : terms) {
    if (!finder.is_product(term)) {
      others.push_back(term);
      continue;
    }
    auto same = std::find_if(products.begin(), products.end(), [&](const auto& group) { return finder.goes_with(group[0], term); });
    if (same == products.end()) same = products.insert(same, std::vector<ValueId>{});
    same->push_back(term);
  }
  if (std::none_of(products.begin(), products.end(), [](const auto& group) { return group.size() > 1; })) return {};
  const auto sum = [&](const std::vector<Value>& parts) {
    Value out = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) out = rebuild.graph().add(Op::add, {out, parts[i]})[0];
    return out;
  };
  std::vector<Value> parts, rest;
  for (const auto& group : products) {
    std::vector<Value> matrices;
    for (ValueId id : group) matrices.push_back(rebuild[rebuild.from().maker(id).operands[1]]);
    const Node& first = rebuild.from().maker(group[0]);
    parts.push_back(rebuild.graph().add(Op::dot_general, {rebuild[first.operands[0]], sum(matrices)}, first.attributes)[0]);
  }
  for (ValueId id : others) rest.push_back(rebuild[id]);  // constants among them become one
  if (!rest.empty()) parts.push_back(sum(rest));
  return sum(parts);
}

}  // namespace

Graph sum_products(const Graph& graph) {
  const SumFinder finder(graph);
  Rebuild rebuild(graph);
  for (const Node& node : graph.nodes()) {
    const auto terms = finder.terms(node);
    const Value simpler = terms.size() < 2 ? Value() : joined(rebuild, finder, terms);
    if (simpler)
      rebuild.map(node.results[0], simpler);
    else
      rebuild.copy(node, node.body ? std::make_shared<const Graph>(sum_products(*node.body)) : nullptr);
  }
  return rebuild.finish();
}

}  // namespace tutti
