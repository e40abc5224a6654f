#include "tutti/transform/repeat.h"

#include <map>

#include "tutti/graph/build.h"

namespace tutti {

Graph repeat(const Graph& graph, int64_t times) {
  std::map<ValueId, ValueId> next;  // of states that change
  for (const auto& update : graph.updates()) next.emplace(update.state, update.next);
  Graph to;
  std::vector<Value> carries, slices, whole;
  std::vector<ValueId> carried, sliced, shared;  // in the old graph
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::parameter) continue;
    const ValueId id = node.results[0];
    if (role(node) == Graph::Role::input) {
      Ints extents = graph.type(id).shape.extents();
      extents.insert(extents.begin(), times);
      slices.push_back(to.input(node.attributes.text("name"), {graph.type(id).dtype, extents}));
      sliced.push_back(id);
    } else {
      const bool changes = next.contains(id);
      (changes ? carries : whole).push_back(copy_leaf(to, graph, node));
      (changes ? carried : shared).push_back(id);
    }
  }
  const auto step = [&](Graph& body, const std::vector<Value>& states, const std::vector<Value>& inputs, const std::vector<Value>& others) {
    std::vector<Value> values(graph.value_count());
    for (size_t i = 0; i < carried.size(); ++i) values[at(carried[i])] = states[i];
    for (size_t i = 0; i < sliced.size(); ++i) values[at(sliced[i])] = inputs[i];
    for (size_t i = 0; i < shared.size(); ++i) values[at(shared[i])] = others[i];
    for (const Node& node : graph.nodes()) {
      if (node.op == Op::parameter) continue;
      if (row(node.op).op_class == OpClass::leaf) {
        values[at(node.results[0])] = copy_leaf(body, graph, node);
        continue;
      }
      std::vector<Value> operands;
      for (ValueId id : node.operands) operands.push_back(values[at(id)]);
      const auto results = body.add(node.op, operands, node.attributes, node.body);
      for (size_t i = 0; i < results.size(); ++i) values[at(node.results[i])] = results[i];
    }
    ScanStep out;
    for (ValueId state : carried) out.carries.push_back(values[at(next.at(state))]);
    for (const auto& output : graph.outputs()) out.stacked.push_back(values[at(output.value)]);
    return out;
  };
  const ScanResult done = scan(carries, slices, whole, times, false, step);
  for (size_t i = 0; i < carries.size(); ++i) to.update(carries[i], done.carries[i]);
  for (size_t i = 0; i < graph.outputs().size(); ++i) to.output(graph.outputs()[i].name, done.stacked[i]);
  return to;
}

}  // namespace tutti
