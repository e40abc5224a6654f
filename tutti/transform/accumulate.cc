#include "tutti/transform/accumulate.h"

#include "tutti/graph/build.h"
#include "tutti/transform/append.h"

namespace tutti {

Graph accumulate(const Graph& graph, size_t first) {
  Graph to;
  std::vector<Value> inputs;
  for (const Node* node : graph.parameters(Graph::Role::input))
    inputs.push_back(to.input(node->attributes.text("name"), graph.type(node->results[0])));
  std::vector<Value> so_far;
  for (size_t i = first; i < graph.outputs().size(); ++i)
    so_far.push_back(to.input("so far " + graph.outputs()[i].name, graph.type(graph.outputs()[i].value)));
  const std::vector<Value> outputs = append(to, graph, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) to.output(graph.outputs()[i].name, i < first ? outputs[i] : so_far[i - first] + outputs[i]);
  return to;
}

}  // namespace tutti
