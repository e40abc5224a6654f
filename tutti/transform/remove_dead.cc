#include "tutti/transform/passes.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

using Flags = std::vector<char>;

bool is_input(const Node& node) { return node.op == Op::parameter && role(node) == Graph::Role::input; }

// What remains of a scan: which of its operands and results, and the body for them.
struct Cut {
  Flags operands, results;
  std::shared_ptr<const Graph> body;
};

// Marks what the marked values are made from. `cuts` gets an entry a scan, by node.
void spread(const Graph& graph, Flags& live, std::vector<Cut>& cuts);

// A body with the outputs that are kept, and of its parameters those that they need.
std::shared_ptr<const Graph> cut_body(const Graph& body, const Flags& outputs, const Flags& live, const std::vector<Cut>& cuts);

Cut cut_scan(const Node& node, const Flags& live_outside) {
  const Graph& body = *node.body;
  auto carries = static_cast<size_t>(node.attributes.integer("carries"));
  std::vector<const Node*> parameters = body.parameters(Graph::Role::input);
  Cut cut{Flags(parameters.size()), Flags(node.results.size()), nullptr};
  for (size_t i = 0; i < node.results.size(); ++i) cut.results[i] = live_outside[static_cast<size_t>(node.results[i])];
  // A carry that the body reads for what is kept is kept itself, which may need more carries.
  while (true) {
    Flags live(body.value_count());
    std::vector<Cut> inner(body.nodes().size());
    for (size_t i = 0; i < cut.results.size(); ++i)
      if (cut.results[i]) live[static_cast<size_t>(body.outputs()[i].value)] = true;
    spread(body, live, inner);
    bool grown = false;
    for (size_t i = 0; i < parameters.size(); ++i) {
      cut.operands[i] = live[static_cast<size_t>(parameters[i]->results[0])];
      if (i < carries && cut.operands[i] && !cut.results[i]) {
        cut.results[i] = true;
        grown = true;
      }
      if (i < carries && cut.results[i]) cut.operands[i] = true;
    }
    if (grown) continue;
    for (size_t i = 0; i < carries; ++i)
      if (cut.results[i]) live[static_cast<size_t>(parameters[i]->results[0])] = true;
    cut.body = cut_body(body, cut.results, live, inner);
    return cut;
  }
}

void spread(const Graph& graph, Flags& live, std::vector<Cut>& cuts) {
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    bool used = false;
    for (ValueId id : node.results) used |= live[at(id)] != 0;
    if (!used) continue;
    if (node.op == Op::scan) cuts[n] = cut_scan(node, live);
    for (size_t i = 0; i < node.operands.size(); ++i)
      if (node.op != Op::scan || cuts[n].operands[i]) live[static_cast<size_t>(node.operands[i])] = true;
  }
}

template <class T>
std::vector<T> kept(const std::vector<T>& all, const Flags& flags) {
  std::vector<T> out;
  for (size_t i = 0; i < all.size(); ++i)
    if (flags[i]) out.push_back(all[i]);
  return out;
}

void copy_scan(Rebuild& rebuild, const Node& node, const Cut& cut) {
  Attributes attributes = node.attributes;
  auto carries = static_cast<size_t>(node.attributes.integer("carries")), slices = static_cast<size_t>(node.attributes.integer("slices"));
  auto count = [&](size_t first, size_t end) {
    int64_t out = 0;
    for (size_t i = first; i < end; ++i) out += cut.operands[i];
    return out;
  };
  attributes.set("carries", count(0, carries));
  attributes.set("slices", count(carries, carries + slices));
  std::vector<Value> operands;
  for (ValueId id : kept(node.operands, cut.operands)) operands.push_back(rebuild[id]);
  auto results = rebuild.graph().add(Op::scan, operands, attributes, cut.body);
  std::vector<ValueId> old = kept(node.results, cut.results);
  for (size_t i = 0; i < old.size(); ++i) rebuild.map(old[i], results[i]);
}

void copy_live(Rebuild& rebuild, const Flags& live, const std::vector<Cut>& cuts) {
  const Graph& graph = rebuild.from();
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    bool used = false;
    for (ValueId id : node.results) used |= live[at(id)] != 0;
    if (!used) continue;
    if (node.op == Op::scan) {
      copy_scan(rebuild, node, cuts[n]);
    } else {
      rebuild.copy(node);
    }
  }
}

std::shared_ptr<const Graph> cut_body(const Graph& body, const Flags& outputs, const Flags& live, const std::vector<Cut>& cuts) {
  Rebuild rebuild(body);
  copy_live(rebuild, live, cuts);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) rebuild.graph().output(body.outputs()[i].name, rebuild[body.outputs()[i].value]);
  return std::make_shared<const Graph>(std::move(rebuild.graph()));
}

}  // namespace

Graph remove_dead(const Graph& graph) {
  Flags live(graph.value_count());
  std::vector<Cut> cuts(graph.nodes().size());
  for (const auto& output : graph.outputs()) live[static_cast<size_t>(output.value)] = true;
  for (const auto& update : graph.updates()) live[static_cast<size_t>(update.state)] = live[static_cast<size_t>(update.next)] = true;
  for (const Node& node : graph.nodes())
    if (is_input(node)) live[static_cast<size_t>(node.results[0])] = true;
  spread(graph, live, cuts);
  Rebuild rebuild(graph);
  copy_live(rebuild, live, cuts);
  return rebuild.finish();
}

}  // namespace tutti
