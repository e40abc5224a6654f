#include "tutti/graph/graph.h"

#include <set>

#include "tutti/base/error.h"

namespace tutti {

namespace {
// A budget against hostile configs (a thousand nested repeats), far above any real model.
constexpr size_t max_nodes = 2'000'000;
}  // namespace

const Type& Value::type() const { return graph_->type(id_); }

int64_t Value::extent(int64_t axis) const {
  int64_t at = axis < 0 ? axis + rank() : axis;
  if (at < 0 || at >= rank()) fail<InvalidArgument>("graph", "axis {} is outside of {}", axis, to_string(shape()));
  return shape()[at];
}

Graph Graph::clone() const {
  Graph out;
  out.nodes_ = nodes_;
  out.values_ = values_;
  out.outputs_ = outputs_;
  out.updates_ = updates_;
  out.origins_ = origins_;
  return out;
}

void Graph::set_origin(size_t first, size_t end, int32_t origin, bool all) {
  for (; first < end; ++first)
    if (all || nodes_[first].origin < 0) nodes_[first].origin = origin;
}

std::vector<Value> Graph::append(Node node, const Type* declared) {
  if (nodes_.size() >= max_nodes) fail<InvalidArgument>("graph", "more than {} nodes", max_nodes);
  std::vector<Type> operands;
  operands.reserve(node.operands.size());
  for (ValueId id : node.operands) operands.push_back(type(id));
  auto results = infer_types({node.op, operands, node.attributes, declared, node.body.get()});
  std::vector<Value> out;
  for (auto& result : results) {
    auto id = static_cast<ValueId>(values_.size());
    values_.push_back({std::move(result), static_cast<int32_t>(nodes_.size())});
    node.results.push_back(id);
    out.emplace_back(this, id);
  }
  nodes_.push_back(std::move(node));
  return out;
}

Value Graph::parameter(Role role, std::string name, Type type, Tensor initial) {
  if (!initial.empty() && !(initial.type() == type))
    fail<InvalidArgument>("graph", "parameter '{}' is {}, its value {}", name, to_string(type), to_string(initial.type()));
  Node node{Op::parameter, {}, {}, {{"role", std::string(tutti::name(role))}, {"name", std::move(name)}}, std::move(initial), {}};
  return append(std::move(node), &type)[0];
}

Value Graph::constant(Tensor literal) {
  Type type = literal.type();
  return append({Op::constant, {}, {}, {}, std::move(literal), {}}, &type)[0];
}

Value Graph::iota(Type type, int64_t dimension) { return append({Op::iota, {}, {}, {{"dimension", dimension}}, {}, {}}, &type)[0]; }

std::vector<Value> Graph::add(Op op, const std::vector<Value>& operands, Attributes attributes, std::shared_ptr<const Graph> body) {
  Node node{op, {}, {}, std::move(attributes), {}, std::move(body)};
  for (Value v : operands) {
    if (!v || &v.graph() != this) fail<InternalError>("graph", "an operand of {} belongs to another graph", tutti::name(op));
    node.operands.push_back(v.id());
  }
  return append(std::move(node), nullptr);
}

void Graph::output(std::string name, Value value) { outputs_.push_back({std::move(name), value.id()}); }
void Graph::update(Value state, Value next) { updates_.push_back({state.id(), next.id()}); }

std::vector<const Node*> Graph::parameters(Role wanted) const {
  std::vector<const Node*> out;
  for (const auto& node : nodes_)
    if (node.op == Op::parameter && role(node) == wanted) out.push_back(&node);
  return out;
}

Value copy_leaf(Graph& to, const Graph& from, const Node& leaf, const std::string& prefix) {
  const Type& type = from.type(leaf.results[0]);
  if (leaf.op == Op::parameter) return to.parameter(role(leaf), prefix + leaf.attributes.text("name"), type, leaf.literal);
  return leaf.op == Op::constant ? to.constant(leaf.literal) : to.iota(type, leaf.attributes.integer("dimension"));
}

std::string_view name(Graph::Role role) { return role == Graph::Role::input ? "input" : role == Graph::Role::weight ? "weight" : "state"; }

Graph::Role role(const Node& parameter) {
  const auto& text = parameter.attributes.text("role");
  return text == "input" ? Graph::Role::input : text == "weight" ? Graph::Role::weight : Graph::Role::state;
}

void verify(const Graph& graph) {
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    std::vector<Type> operands;
    for (ValueId id : node.operands) {
      if (id < 0 || static_cast<size_t>(id) >= graph.value_count() || graph.producer(id) >= static_cast<int32_t>(n))
        fail<InternalError>("verify", "node {} ({}) uses value %{} before it is made", n, name(node.op), id);
      operands.push_back(graph.type(id));
    }
    const Type* declared = node.results.empty() ? nullptr : &graph.type(node.results[0]);
    if (node.body) verify(*node.body);
    std::vector<Type> inferred;
    try {
      inferred = infer_types({node.op, operands, node.attributes, declared, node.body.get()});
    } catch (const InvalidArgument& e) {
      fail<InternalError>("verify", "node {}: {}", n, e.what());
    }
    if (inferred.size() != node.results.size())
      fail<InternalError>("verify", "node {} ({}) has {} results", n, name(node.op), node.results.size());
    for (size_t i = 0; i < inferred.size(); ++i)
      if (!(inferred[i] == graph.type(node.results[i])) || graph.producer(node.results[i]) != static_cast<int32_t>(n))
        fail<InternalError>("verify", "node {} ({}) should give {}, is {}", n, name(node.op), to_string(inferred[i]),
                            to_string(graph.type(node.results[i])));
    if (node.op == Op::constant && !(node.literal.type() == *declared))
      fail<InternalError>("verify", "node {}: literal of another type", n);
  }
  auto exists = [&](ValueId id) { return id >= 0 && static_cast<size_t>(id) < graph.value_count(); };
  for (const auto& output : graph.outputs())
    if (!exists(output.value)) fail<InternalError>("verify", "output '{}' does not exist", output.name);
  std::set<ValueId> updated;
  for (const auto& update : graph.updates()) {
    if (!exists(update.state) || !exists(update.next) || !(graph.type(update.state) == graph.type(update.next)))
      fail<InternalError>("verify", "update of %{} does not fit", update.state);
    const Node& state = graph.maker(update.state);
    if (state.op != Op::parameter || role(state) != Graph::Role::state)
      fail<InternalError>("verify", "%{} is updated and not a state", update.state);
    if (!updated.insert(update.state).second) fail<InternalError>("verify", "%{} is updated twice", update.state);
  }
}

}  // namespace tutti
