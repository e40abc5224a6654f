#include <algorithm>
#include <map>

#include "tutti/graph/compose.h"
#include "tutti/transform/passes.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

bool is_sum_over_first(const Node& node) {
  return node.op == Op::reduce && node.attributes.text("kind") == "add" && node.attributes.ints("dimensions") == Ints{0};
}

// Finds sums in which one value is multiplied by several constant matrices: x A + x B = x (A + B). The mean of linear models is such a sum.
class SumFinder {
 public:
  explicit SumFinder(const Graph& graph) : graph_(graph), uses_(count_uses(graph)) {}

  // What the node adds up, each of the type of its result; none when it is no sum, or only a part of one.
  std::vector<ValueId> terms(const Node& node) const {
    std::vector<ValueId> out;
    if (node.op == Op::add) {
      for (ValueId id : node.operands) collect(id, out);
    } else if (is_sum_over_first(node)) {
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

  // What a sum over the first axis adds up, as the parts that lie side by side along it, each again as a sum; none when it is no such sum.
  std::vector<std::vector<ValueId>> parts(const Node& node) const {
    if (!is_sum_over_first(node) || uses(node.operands[0]) != 1) return {};
    const Node& whole = graph_.maker(node.operands[0]);
    const bool is_joined = whole.op == Op::concatenate && whole.attributes.integer("dimension") == 0;
    std::vector<std::vector<ValueId>> out;
    for (ValueId part : is_joined ? whole.operands : std::vector{node.operands[0]}) collect(part, out.emplace_back());
    return out;
  }

  // Whether a term is the products of one row each with constant matrices, stacked along the first axis: added up, they are one product of
  // a longer row.
  bool is_stack_of_rows(ValueId id) const {
    const Node& node = graph_.maker(id);
    if (!is_product(id) || node.attributes.ints("lhs_batch") != Ints{0} || node.attributes.ints("rhs_batch") != Ints{0}) return false;
    const Shape& left = graph_.type(node.operands[0]).shape;
    const Ints& depth = node.attributes.ints("lhs_contracting");
    for (int64_t axis = 1; axis < left.rank(); ++axis)
      if (left[axis] != 1 && std::find(depth.begin(), depth.end(), axis) == depth.end()) return false;
    return true;
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

Value sum(Rebuild& rebuild, const std::vector<Value>& terms) {
  Value out = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) out = rebuild.graph().add(Op::add, {out, terms[i]})[0];
  return out;
}

// The mean of models that are linear in the end, one sample at a time: what each multiplies its row with becomes a part of one column.
// Nothing when no part has such products.
Value summed_parts(Rebuild& rebuild, const SumFinder& finder, const Node& node) {
  const auto parts = finder.parts(node);
  const auto has_stack = [&](const auto& part) {
    return std::any_of(part.begin(), part.end(), [&](ValueId id) { return finder.is_stack_of_rows(id); });
  };
  if (std::none_of(parts.begin(), parts.end(), has_stack)) return {};
  std::vector<Value> terms;
  for (const auto& part : parts)
    for (ValueId id : part) {
      if (!finder.is_stack_of_rows(id)) {
        terms.push_back(rebuild.graph().add(Op::reduce, {rebuild[id]}, node.attributes)[0]);
        continue;
      }
      const Node& product = rebuild.from().maker(id);
      Attributes attributes = product.attributes;
      for (const char* batch : {"lhs_batch", "rhs_batch"}) attributes.set(batch, Ints());
      for (const char* contracting : {"lhs_contracting", "rhs_contracting"}) {
        Ints axes = attributes.ints(contracting);
        axes.insert(axes.begin(), 0);
        attributes.set(contracting, axes);
      }
      terms.push_back(rebuild.graph().add(Op::dot_general, {rebuild[product.operands[0]], rebuild[product.operands[1]]}, attributes)[0]);
    }
  return sum(rebuild, terms);
}

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
  std::vector<Value> parts, rest;
  for (const auto& group : products) {
    std::vector<Value> matrices;
    for (ValueId id : group) matrices.push_back(rebuild[rebuild.from().maker(id).operands[1]]);
    const Node& first = rebuild.from().maker(group[0]);
    parts.push_back(rebuild.graph().add(Op::dot_general, {rebuild[first.operands[0]], sum(rebuild, matrices)}, first.attributes)[0]);
  }
  for (ValueId id : others) rest.push_back(rebuild[id]);  // constants among them become one
  if (!rest.empty()) parts.push_back(sum(rebuild, rest));
  return sum(rebuild, parts);
}

}  // namespace

Graph sum_products(const Graph& graph) {
  const SumFinder finder(graph);
  Rebuild rebuild(graph);
  for (const Node& node : graph.nodes()) {
    const auto terms = finder.terms(node);
    Value simpler = terms.size() < 2 ? Value() : joined(rebuild, finder, terms);
    if (!simpler) simpler = summed_parts(rebuild, finder, node);
    if (simpler)
      rebuild.map(node.results[0], simpler);
    else
      rebuild.copy(node, node.body ? std::make_shared<const Graph>(sum_products(*node.body)) : nullptr);
  }
  return rebuild.finish();
}

}  // namespace tutti
