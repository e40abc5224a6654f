#include "tutti/device/step.h"

#include "tutti/base/saturate.h"

namespace tutti {

namespace {

// broadcast_in_dim that only inserts axes of extent 1.
bool only_inserts_ones(const Type& from, const Type& to, const Ints& dimensions) {
  if (from.shape.elements() != to.shape.elements()) return false;
  int64_t last = -1;
  for (int64_t i = 0; i < from.shape.rank(); ++i) {
    if (from.shape[i] == 1) continue;
    if (dimensions[static_cast<size_t>(i)] < last) return false;
    last = dimensions[static_cast<size_t>(i)];
  }
  return true;
}

}  // namespace

bool is_view(const Graph& graph, const Node& node) {
  if (node.op == Op::reshape || node.op == Op::bitcast_convert) return true;
  if (node.op == Op::convert) return graph.type(node.operands[0]) == graph.type(node.results[0]);
  if (node.op == Op::broadcast_in_dim)
    return only_inserts_ones(graph.type(node.operands[0]), graph.type(node.results[0]), node.attributes.ints("dimensions"));
  return false;
}

bool needs_step(const Graph& graph, const Node& node) {
  return node.op != Op::parameter && node.op != Op::constant && !is_view(graph, node);
}

bool is_looked_through(const Node& node) { return node.op == Op::broadcast_in_dim || node.op == Op::slice; }

int64_t total_launches(std::span<const Step> steps) {
  int64_t count = 0;
  for (const Step& step : steps) count = saturating_add(count, step.launches);
  return count;
}

int64_t scan_launches(const Node& scan, std::span<const Step> body) {
  return saturating_multiply(total_launches(body), scan.attributes.integer("length"));
}

Step step_of(const Graph& graph, int32_t index, std::string name) {
  const Node& node = graph.nodes()[static_cast<size_t>(index)];
  Step step{std::move(name), {index}, node.operands, node.results};
  if (node.body) step.launches = scan_launches(node, one_step_a_node(*node.body));
  return step;
}

std::vector<Step> one_step_a_node(const Graph& graph) {
  std::vector<Step> out;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (!needs_step(graph, node)) continue;
    out.push_back(step_of(graph, static_cast<int32_t>(n), std::string(tutti::name(node.op))));
  }
  return out;
}

}  // namespace tutti
