#include "tutti/graph/gradient.h"

#include <map>

#include "tutti/base/error.h"
#include "tutti/graph/build.h"

namespace tutti {

namespace {

// Whether each value of the first `count` nodes depends on one of `sources` by floating-point values.
std::vector<bool> dependents(const Graph& graph, size_t count, const std::vector<ValueId>& sources) {
  std::vector<bool> out(graph.value_count());
  for (ValueId id : sources) out[at(id)] = true;
  for (size_t n = 0; n < count; ++n) {
    const Node& node = graph.nodes()[n];
    if (row(node.op).gradient == gradient_rules::none) continue;
    bool any = false;
    for (ValueId id : node.operands) any |= out[at(id)];
    for (ValueId id : node.results) out[at(id)] = out[at(id)] || (any && is_float(graph.type(id).dtype));
  }
  return out;
}

}  // namespace

Cotangents backpropagate(Graph& graph, const std::vector<Seed>& seeds, const std::vector<ValueId>& wanted,
                         std::vector<Replacement>& replacements) {
  const size_t count = graph.nodes().size();
  const std::vector<bool> depends = dependents(graph, count, wanted);
  Cotangents cotangents(graph.value_count());
  const auto accumulate = [&](ValueId id, Value more) {
    if (!more || !depends[at(id)]) return;
    Value& sum = cotangents[at(id)];
    sum = sum ? sum + more : more;
  };
  for (const Seed& seed : seeds) accumulate(seed.value, seed.cotangent);
  for (size_t n = count; n-- > 0;) {
    const Node& node = graph.nodes()[n];
    GradientNode step{graph, n, {}, {}, {}, {}, {}, replacements};
    bool flows = false, leads = false;
    for (ValueId id : node.results) {
      step.cotangents.push_back(cotangents[at(id)]);
      flows |= static_cast<bool>(step.cotangents.back());
    }
    for (ValueId id : node.operands) {
      step.wanted.push_back(depends[at(id)]);
      leads |= step.wanted.back();
    }
    if (!flows || !leads) continue;
    step.node = node;
    for (ValueId id : step.node.operands) step.operands.emplace_back(&graph, id);
    for (ValueId id : step.node.results) step.results.emplace_back(&graph, id);
    const Cotangents flow = row(step.node.op).gradient(step);
    for (size_t i = 0; i < flow.size(); ++i) accumulate(step.node.operands[i], flow[i]);
  }
  Cotangents out;
  for (ValueId id : wanted) out.push_back(cotangents[at(id)]);
  return out;
}

Replaced replace(const Graph& graph, const std::vector<Replacement>& replacements) {
  std::map<size_t, size_t> by_node;
  std::vector<bool> moved(graph.nodes().size());
  for (const auto& [node, with] : replacements) {
    by_node[node] = with;
    moved[with] = true;
  }
  Replaced out;
  out.values.resize(graph.value_count());
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (moved[n]) continue;
    const auto found = by_node.find(n);
    const Node& old = graph.nodes()[n];
    const Node& node = found == by_node.end() ? old : graph.nodes()[found->second];
    if (row(node.op).op_class == OpClass::leaf) {
      out.values[at(node.results[0])] = copy_leaf(out.graph, graph, node).id();
      continue;
    }
    std::vector<Value> operands;
    for (ValueId id : node.operands) operands.emplace_back(&out.graph, out.values[at(id)]);
    const auto results = out.graph.add(node.op, operands, node.attributes, node.body);
    for (size_t i = 0; i < results.size(); ++i) out.values[at(node.results[i])] = results[i].id();
    for (size_t i = 0; i < old.results.size(); ++i) out.values[at(old.results[i])] = results[i].id();
  }
  const auto now = [&](ValueId id) { return Value(&out.graph, out.values[at(id)]); };
  for (const auto& update : graph.updates()) out.graph.update(now(update.state), now(update.next));
  for (const auto& output : graph.outputs()) out.graph.output(output.name, now(output.value));
  return out;
}

namespace gradient_rules {

Cotangents none(const GradientNode& n) { return Cotangents(n.operands.size()); }
Cotangents refused(const GradientNode& n) { fail<Unsupported>("differentiate", "{} has no gradient rule", name(n.node.op)); }

}  // namespace gradient_rules

}  // namespace tutti
