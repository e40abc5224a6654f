#include "tutti/transform/append.h"

#include "tutti/base/error.h"

namespace tutti {

std::vector<Value> append(Graph& to, const Graph& from, const std::vector<Value>& inputs, const std::string& prefix) {
  std::vector<Value> values(from.value_count());
  size_t next = 0;
  for (const Node& node : from.nodes()) {
    Value& first = values[at(node.results[0])];
    if (node.op == Op::parameter && role(node) == Graph::Role::input) {
      const Type& type = from.type(node.results[0]);
      if (next == inputs.size()) fail<InvalidArgument>("append", "the graph has more than {} inputs", inputs.size());
      if (inputs[next].type() != type)
        fail<InvalidArgument>("append", "input '{}' is {}; got {}", node.attributes.text("name"), to_string(type),
                              to_string(inputs[next].type()));
      first = inputs[next++];
      continue;
    }
    if (row(node.op).op_class == OpClass::leaf) {
      first = copy_leaf(to, from, node, prefix);
      continue;
    }
    std::vector<Value> operands;
    operands.reserve(node.operands.size());
    for (ValueId id : node.operands) operands.push_back(values[at(id)]);
    auto results = to.add(node.op, operands, node.attributes, node.body);
    for (size_t i = 0; i < results.size(); ++i) values[at(node.results[i])] = results[i];
  }
  if (next != inputs.size()) fail<InvalidArgument>("append", "the graph has {} inputs; got {}", next, inputs.size());
  for (const auto& update : from.updates()) to.update(values[at(update.state)], values[at(update.next)]);
  std::vector<Value> out;
  out.reserve(from.outputs().size());
  for (const auto& output : from.outputs()) out.push_back(values[at(output.value)]);
  return out;
}

}  // namespace tutti
