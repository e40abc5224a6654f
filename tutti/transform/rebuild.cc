#include "tutti/transform/rebuild.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti {

Rebuild::Rebuild(const Graph& from) : from_(from), values_(from.value_count()) { to_.set_origins(from.origins()); }

void Rebuild::map(ValueId old, Value value) {
  values_[static_cast<size_t>(old)] = value;
  to_.set_origin(mapped_, to_.nodes().size(), from_.maker(old).origin);
  mapped_ = to_.nodes().size();
}

std::vector<Value> Rebuild::operands(const Node& node) const {
  std::vector<Value> out;
  out.reserve(node.operands.size());
  for (ValueId id : node.operands) out.push_back((*this)[id]);
  return out;
}

void Rebuild::copy(const Node& node, std::shared_ptr<const Graph> body) {
  if (row(node.op).op_class == OpClass::leaf) return map(node.results[0], copy_leaf(to_, from_, node));
  auto results = to_.add(node.op, operands(node), node.attributes, body ? body : node.body);
  for (size_t i = 0; i < results.size(); ++i) map(node.results[i], results[i]);
}

Graph Rebuild::finish() {
  for (const auto& update : from_.updates()) to_.update((*this)[update.state], (*this)[update.next]);
  for (const auto& output : from_.outputs()) to_.output(output.name, (*this)[output.value]);
  return std::move(to_);
}

std::vector<int> count_uses(const Graph& graph) {
  std::vector<int> uses(graph.value_count());
  for (const Node& node : graph.nodes())
    for (ValueId id : node.operands) ++uses[at(id)];
  for (const auto& output : graph.outputs()) ++uses[static_cast<size_t>(output.value)];
  for (const auto& update : graph.updates()) ++uses[static_cast<size_t>(update.next)];
  return uses;
}

bool same_literal(const Tensor& a, const Tensor& b) {
  constexpr int64_t small = 4096;  // bytes
  if (a.empty() || b.empty()) return a.empty() && b.empty();
  if (!(a.type() == b.type())) return false;
  if (a.bytes().data() == b.bytes().data()) return true;
  return a.type().bytes() <= small && std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
}

bool same_graph(const Graph& a, const Graph& b) {
  auto same_node = [&](const Node& x, const Node& y) {
    if (x.op != y.op || x.operands != y.operands || x.results != y.results || !(x.attributes == y.attributes)) return false;
    if (!same_literal(x.literal, y.literal)) return false;
    for (ValueId id : x.results)
      if (!(a.type(id) == b.type(id))) return false;
    return x.body == y.body || (x.body && y.body && same_graph(*x.body, *y.body));
  };
  auto same_output = [](const auto& x, const auto& y) { return x.name == y.name && x.value == y.value; };
  auto same_update = [](const auto& x, const auto& y) { return x.state == y.state && x.next == y.next; };
  return std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(), same_node) &&
         std::equal(a.outputs().begin(), a.outputs().end(), b.outputs().begin(), b.outputs().end(), same_output) &&
         std::equal(a.updates().begin(), a.updates().end(), b.updates().begin(), b.updates().end(), same_update);
}

bool is_constant_leaf(const Node& node) {
  return node.op == Op::constant || (node.op == Op::parameter && role(node) == Graph::Role::weight && !node.literal.empty());
}

bool is_plain_constant(Value value) {
  while (made_by(value).op == Op::reshape) value = Value(&value.graph(), made_by(value).operands[0]);
  return is_constant_leaf(made_by(value));
}

std::optional<double> splat(const Graph& graph, ValueId id) {
  const Node* node = &graph.maker(id);
  while (node->op == Op::broadcast_in_dim || node->op == Op::reshape) node = &graph.maker(node->operands[0]);
  if (node->op != Op::constant || node->literal.elements() != 1) return {};
  return dispatch(node->literal.dtype(), [&](auto zero) { return convert_element<double>(node->literal.as<decltype(zero)>()[0]); });
}

namespace {
bool never_negative(Value value, int depth) {
  if (depth == 0 || !is_float(value.dtype())) return false;
  if (auto number = splat(value)) return !std::signbit(*number) && !std::isnan(*number);
  const Node& node = made_by(value);
  auto operand = [&](size_t i) { return never_negative(Value(&value.graph(), node.operands[i]), depth - 1); };
  switch (node.op) {
    case Op::abs:
    case Op::exponential:
    case Op::logistic: return true;
    case Op::multiply: return node.operands[0] == node.operands[1] || (operand(0) && operand(1));
    case Op::add:
    case Op::divide:
    case Op::minimum: return operand(0) && operand(1);
    case Op::maximum: {  // which zero is the larger one is not said, so a bound of zero does not settle it
      auto above_zero = [&](size_t i) {
        auto number = splat(Value(&value.graph(), node.operands[i]));
        return number && *number > 0;
      };
      return above_zero(0) || above_zero(1) || (operand(0) && operand(1));
    }
    case Op::reduce: return node.attributes.text("kind") != "min" && node.attributes.text("kind") != "max" && operand(0);
    case Op::sqrt:
    case Op::broadcast_in_dim:
    case Op::reshape:
    case Op::transpose:
    case Op::slice: return operand(0);
    default: return false;
  }
}
}  // namespace

bool never_negative(Value value) { return never_negative(value, 8); }

Ints axes_not_one(const Shape& shape) {
  Ints out;
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (shape[i] != 1) out.push_back(i);
  return out;
}

Shape squeezed(const Shape& shape) {
  Ints out;
  for (int64_t extent : shape)
    if (extent != 1) out.push_back(extent);
  return out;
}

}  // namespace tutti
