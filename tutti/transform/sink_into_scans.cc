#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tutti/transform/passes.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

Ints lowered(Ints axes) {
  for (int64_t& axis : axes) --axis;
  return axes;
}

// A slice of a scan that its body can make itself: the nodes from what it slices then, and what it reads whole, to the value.
class Sunk {
 public:
  Sunk(const Graph& graph, const std::vector<int>& uses, ValueId root) : graph_(graph), uses_(uses), root_(root) {
    if (uses_[at(root)] == 1) follow(root);
  }

  // Before the loop the value is written once and read once; in it every step reads what it is made of.
  bool pays(int64_t length) const {
    if (!has_product_ || length == 0) return false;
    int64_t bytes = 0;
    for (ValueId id : sliced_) bytes += graph_.type(id).bytes() / length;
    for (ValueId id : whole_) bytes += graph_.type(id).bytes();
    return bytes < 2 * graph_.type(root_).bytes() / length;
  }

  const std::vector<ValueId>& sliced() const { return sliced_; }
  const std::vector<ValueId>& whole() const { return whole_; }

  // One step of the value. `inside`: what the body has, by value of the graph around it.
  Value step(Graph& body, std::map<ValueId, Value>& inside) const { return step(root_, body, inside); }

 private:
  void follow(ValueId id) {
    const Node& node = graph_.maker(id);
    const Shape& shape = graph_.type(id).shape;
    const OpClass op_class = row(node.op).op_class;
    const auto is_without_steps = [](const Ints& axes) { return std::find(axes.begin(), axes.end(), 0) == axes.end(); };
    if (id != root_ && uses_[at(id)] > 1) return add(sliced_, id);
    if (op_class == OpClass::unary || op_class == OpClass::binary || op_class == OpClass::ternary) {
      for (ValueId operand : node.operands)
        if (graph_.type(operand).shape == shape) {
          follow(operand);
        } else {
          add(whole_, operand);
        }
    } else if (node.op == Op::broadcast_in_dim && is_without_steps(node.attributes.ints("dimensions"))) {
      add(whole_, node.operands[0]);
    } else if (node.op == Op::dot_general && node.attributes.ints("lhs_batch").empty() &&
               is_without_steps(node.attributes.ints("lhs_contracting"))) {
      has_product_ = true;
      follow(node.operands[0]);
      add(whole_, node.operands[1]);
    } else {
      add(sliced_, id);
    }
  }

  static void add(std::vector<ValueId>& list, ValueId id) {
    if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
  }

  Value step(ValueId id, Graph& body, std::map<ValueId, Value>& inside) const {
    if (const auto known = inside.find(id); known != inside.end()) return known->second;
    const Node& node = graph_.maker(id);
    std::vector<Value> operands;
    for (ValueId operand : node.operands) operands.push_back(step(operand, body, inside));
    Attributes attributes = node.attributes;
    if (node.op == Op::broadcast_in_dim) {
      attributes.set("shape", Ints(graph_.type(id).shape.begin() + 1, graph_.type(id).shape.end()));
      attributes.set("dimensions", lowered(attributes.ints("dimensions")));
    }
    if (node.op == Op::dot_general) attributes.set("lhs_contracting", lowered(attributes.ints("lhs_contracting")));
    return inside[id] = body.add(node.op, operands, attributes)[0];
  }

  const Graph& graph_;
  const std::vector<int>& uses_;
  const ValueId root_;
  bool has_product_ = false;
  std::vector<ValueId> sliced_, whole_;
};

// The scan with what pays made by its body.
void rewrite(Rebuild& rebuild, const Node& node, const std::vector<int>& uses) {
  const Graph& graph = rebuild.from();
  const auto carries = static_cast<size_t>(node.attributes.integer("carries")),
             slices = static_cast<size_t>(node.attributes.integer("slices"));
  const int64_t length = node.attributes.integer("length");
  std::map<size_t, Sunk> sunk;  // by operand
  for (size_t i = carries; i < carries + slices; ++i)
    if (Sunk one(graph, uses, node.operands[i]); one.pays(length)) sunk.emplace(i, std::move(one));
  // What one reads step by step and another whole would be two values of the body.
  const auto is_read_whole = [&](ValueId id) {
    return std::ranges::any_of(sunk, [&](const auto& one) { return std::ranges::count(one.second.whole(), id) > 0; });
  };
  std::erase_if(sunk, [&](const auto& one) { return std::ranges::any_of(one.second.sliced(), is_read_whole); });
  if (sunk.empty()) return rebuild.copy(node);

  Rebuild body(*node.body);
  std::map<ValueId, Value> inside;
  std::vector<Value> operands;
  const auto declare = [&](const std::vector<ValueId>& ids, bool sliced) {
    for (ValueId id : ids) {
      const Shape& shape = graph.type(id).shape;
      const Type type{graph.type(id).dtype, sliced ? Ints(shape.begin() + 1, shape.end()) : shape.extents()};
      if (const auto [known, is_new] = inside.emplace(id, Value()); is_new) {
        known->second = body.graph().input(fmt::format("{}{}", sliced ? "sunk_slice" : "sunk_whole", id), type);
        operands.push_back(rebuild[id]);
      }
    }
  };
  const std::vector<const Node*> parameters = node.body->parameters(Graph::Role::input);
  size_t kept = 0;
  for (size_t i = 0; i <= parameters.size(); ++i) {
    if (i == carries + slices) {
      for (const auto& [operand, one] : sunk) declare(one.sliced(), true);
      kept = operands.size() - carries;
    }
    if (i == parameters.size()) break;
    if (sunk.contains(i)) continue;
    body.copy(*parameters[i]);
    operands.push_back(rebuild[node.operands[i]]);
  }
  for (const auto& [operand, one] : sunk) declare(one.whole(), false);
  for (const auto& [operand, one] : sunk) body.map(parameters[operand]->results[0], one.step(body.graph(), inside));
  for (const Node& inner : node.body->nodes())
    if (inner.op != Op::parameter) body.copy(inner);
  Attributes attributes = node.attributes;
  attributes.set("slices", static_cast<int64_t>(kept));
  const auto results = rebuild.graph().add(Op::scan, operands, attributes, std::make_shared<const Graph>(body.finish()));
  for (size_t i = 0; i < results.size(); ++i) rebuild.map(node.results[i], results[i]);
}

}  // namespace

Graph sink_into_scans(const Graph& graph) {
  const std::vector<int> uses = count_uses(graph);
  return rewrite_scans(graph, sink_into_scans, [&](Rebuild& rebuild, const Node& node) { rewrite(rebuild, node, uses); });
}

}  // namespace tutti
