#include "tutti/transform/passes.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

// The body with constants instead of the parameters that have a literal here.
std::shared_ptr<const Graph> with_constants(const Graph& body, const std::vector<Tensor>& literals) {
  Rebuild rebuild(body);
  size_t parameter = 0;
  for (const Node& node : body.nodes()) {
    if (node.op == Op::parameter && !literals[parameter++].empty()) {
      rebuild.map(node.results[0], rebuild.graph().constant(literals[parameter - 1]));
    } else {
      rebuild.copy(node);
    }
  }
  return std::make_shared<const Graph>(rebuild.finish());
}

}  // namespace

Graph move_weights_into_scans(const Graph& graph) {
  Rebuild rebuild(graph);
  for (const Node& node : graph.nodes()) {
    if (!node.body) {
      rebuild.copy(node);
      continue;
    }
    const auto first_whole = static_cast<size_t>(node.attributes.integer("carries") + node.attributes.integer("slices"));
    std::vector<Tensor> literals(node.operands.size());
    std::vector<Value> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const Node& producer = graph.maker(node.operands[i]);
      if (i >= first_whole && is_constant_leaf(producer)) {
        literals[i] = producer.literal;
      } else {
        operands.push_back(rebuild[node.operands[i]]);
      }
    }
    auto body = std::make_shared<const Graph>(move_weights_into_scans(*with_constants(*node.body, literals)));
    auto results = rebuild.graph().add(Op::scan, operands, node.attributes, std::move(body));
    for (size_t i = 0; i < results.size(); ++i) rebuild.map(node.results[i], results[i]);
  }
  return rebuild.finish();
}

}  // namespace tutti
