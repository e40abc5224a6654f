#include "tutti/device/cpu/loops/composites.h"

#include <cmath>
#include <limits>

namespace tutti::cpu {

CompositeFinder::CompositeFinder(const Graph& graph, std::span<const Node* const> elementwise, std::span<const ValueId> results)
    : graph_(graph), nodes_(elementwise.begin(), elementwise.end()) {
  for (const Node* node : elementwise) reads_.insert(node->operands.begin(), node->operands.end());
  for (ValueId id : results) reads_.insert({id, id});
}

std::vector<FoundComposite> CompositeFinder::find(const Node& node) const {
  std::vector<FoundComposite> found;
  if (graph_.type(node.results[0]).dtype != DType::f32) return found;
  for (const Found& one : {gelu(node), hard_silu(node), silu(node), gated_sum(node), gated(node), leaky_relu(node), relu(node),
                           toward(node), root_plus(node), descent(node, 1), descent(node, 0), minus_quotient(node), multiply_add(node)})
    if (one) found.push_back(*one);
  return found;
}

const Node* CompositeFinder::inner(Op op, ValueId id) const {
  const Node& node = graph_.maker(id);
  return node.op == op && nodes_.contains(&node) && reads_.count(id) == 1 ? &node : nullptr;
}

float CompositeFinder::number(ValueId id) const {
  const Node* node = &graph_.maker(id);
  while (node->op == Op::broadcast_in_dim) node = &graph_.maker(node->operands[0]);
  if (node->op != Op::constant || node->literal.dtype() != DType::f32 || node->literal.shape().elements() != 1)
    return std::numeric_limits<float>::quiet_NaN();
  return node->literal.as<float>()[0];
}

CompositeFinder::Found CompositeFinder::multiply_add(const Node& sum) const {
  if (sum.op != Op::add) return {};
  for (size_t side : {0u, 1u})
    if (const Node* product = inner(Op::multiply, sum.operands[side]))
      return FoundComposite{Composite::multiply_add, {product->operands[0], product->operands[1], sum.operands[1 - side]}, {product}};
  return {};
}

// a + (b - a) * c, and the same with b * b
CompositeFinder::Found CompositeFinder::toward(const Node& sum) const {
  Found found = multiply_add(sum);
  if (!found) return {};
  const ValueId a = found->operands[2];
  for (size_t side : {0u, 1u}) {
    const Node* difference = inner(Op::subtract, found->operands[side]);
    if (difference == nullptr || difference->operands[1] != a) continue;
    found->inside.push_back(difference);
    found->composite = Composite::toward;
    found->operands = {a, difference->operands[0], found->operands[1 - side]};
    const Node* square = inner(Op::multiply, difference->operands[0]);
    if (square != nullptr && square->operands[0] == square->operands[1]) {
      found->inside.push_back(square);
      found->composite = Composite::toward_square;
      found->operands[1] = square->operands[0];
    }
    return found;
  }
  return {};
}

CompositeFinder::Found CompositeFinder::minus_quotient(const Node& node) const {
  const Node* quotient = node.op == Op::subtract ? inner(Op::divide, node.operands[1]) : nullptr;
  if (quotient == nullptr) return {};
  return FoundComposite{Composite::minus_quotient, {node.operands[0], quotient->operands[0], quotient->operands[1]}, {quotient}};
}

CompositeFinder::Found CompositeFinder::root_plus(const Node& sum) const {
  const Node* root = sum.op == Op::add ? inner(Op::sqrt, sum.operands[0]) : nullptr;
  if (root == nullptr) return {};
  return FoundComposite{Composite::root_plus, {root->operands[0], sum.operands[1]}, {root}};
}

CompositeFinder::Found CompositeFinder::descent(const Node& node, size_t factor) const {
  Found found = minus_quotient(node);
  const Node* product = found ? inner(Op::multiply, found->operands[1]) : nullptr;
  const Node* sum = product != nullptr ? inner(Op::add, found->operands[2]) : nullptr;
  const Found root = sum != nullptr ? root_plus(*sum) : Found();
  if (!root) return {};
  found->composite = Composite::descent;
  found->operands = {node.operands[0], product->operands[1 - factor], root->operands[0], product->operands[factor], root->operands[1]};
  found->inside.insert(found->inside.end(), {product, sum, root->inside[0]});
  return found;
}

CompositeFinder::Found CompositeFinder::relu(const Node& node) const {
  if (node.op != Op::maximum || number(node.operands[1]) != 0 || std::signbit(number(node.operands[1]))) return {};
  const Node* sum = inner(Op::add, node.operands[0]);
  if (sum == nullptr) return {};
  Found found = multiply_add(*sum);
  if (found) {
    found->composite = Composite::multiply_add_relu;
  } else {
    found = FoundComposite{Composite::add_relu, sum->operands, {}};
  }
  found->inside.push_back(sum);
  return found;
}

CompositeFinder::Found CompositeFinder::gated(const Node& product) const {
  if (product.op != Op::multiply) return {};
  for (size_t side : {0u, 1u}) {
    const Node* gate = inner(Op::logistic, product.operands[side]);
    if (gate == nullptr) continue;
    const ValueId through = product.operands[1 - side];
    const Node* tanh = inner(Op::tanh, through);
    if (tanh == nullptr) return FoundComposite{Composite::gated, {gate->operands[0], through}, {gate}};
    return FoundComposite{Composite::gated_tanh, {gate->operands[0], tanh->operands[0]}, {gate, tanh}};
  }
  return {};
}

CompositeFinder::Found CompositeFinder::gated_sum(const Node& sum) const {
  if (sum.op != Op::add) return {};
  for (size_t side : {0u, 1u}) {
    const Node *kept = inner(Op::multiply, sum.operands[side]), *added = inner(Op::multiply, sum.operands[1 - side]);
    if (kept == nullptr || added == nullptr) return {};
    const Found first = gated(*kept), second = gated(*added);
    if (!first || !second || second->composite != Composite::gated_tanh || first->composite != Composite::gated) continue;
    Found found = FoundComposite{Composite::gated_sum, first->operands, {kept, added}};
    found->operands.insert(found->operands.end(), second->operands.begin(), second->operands.end());
    for (const Found& part : {first, second}) found->inside.insert(found->inside.end(), part->inside.begin(), part->inside.end());
    return found;
  }
  return {};
}

CompositeFinder::Found CompositeFinder::silu(const Node& node) const {
  if (node.op != Op::multiply) return {};
  for (size_t side : {0u, 1u}) {
    const Node* gate = inner(Op::logistic, node.operands[side]);
    if (gate != nullptr && gate->operands[0] == node.operands[1 - side]) return FoundComposite{Composite::silu, gate->operands, {gate}};
  }
  return {};
}

// (x * 0.5) * (erf(x * 0.7071) + 1)
CompositeFinder::Found CompositeFinder::gelu(const Node& node) const {
  if (node.op != Op::multiply) return {};
  const Node *half = inner(Op::multiply, node.operands[0]), *sum = inner(Op::add, node.operands[1]);
  if (half == nullptr || sum == nullptr || number(half->operands[1]) != 0.5f || number(sum->operands[1]) != 1.0f) return {};
  const Node* error = inner(Op::erf, sum->operands[0]);
  const Node* scaled = error != nullptr ? inner(Op::multiply, error->operands[0]) : nullptr;
  if (scaled == nullptr || scaled->operands[0] != half->operands[0]) return {};
  if (!(std::fabs(number(scaled->operands[1]) - 0.707106781f) < 1e-6f)) return {};
  return FoundComposite{Composite::gelu, {half->operands[0]}, {half, sum, error, scaled}};
}

// x * (min(max(x + 3, 0), 6) / 6)
CompositeFinder::Found CompositeFinder::hard_silu(const Node& node) const {
  if (node.op != Op::multiply) return {};
  const Node* sixth = inner(Op::divide, node.operands[1]);
  const Node* capped = sixth != nullptr ? inner(Op::minimum, sixth->operands[0]) : nullptr;
  const Node* floored = capped != nullptr ? inner(Op::maximum, capped->operands[0]) : nullptr;
  const Node* sum = floored != nullptr ? inner(Op::add, floored->operands[0]) : nullptr;
  if (sum == nullptr || sum->operands[0] != node.operands[0]) return {};
  if (number(sixth->operands[1]) != 6 || number(capped->operands[1]) != 6 || number(floored->operands[1]) != 0 ||
      number(sum->operands[1]) != 3)
    return {};
  return FoundComposite{Composite::hard_silu, {node.operands[0]}, {sixth, capped, floored, sum}};
}

// select(x >= 0, x, x * slope)
CompositeFinder::Found CompositeFinder::leaky_relu(const Node& node) const {
  if (node.op != Op::select) return {};
  const Node *compared = inner(Op::compare, node.operands[0]), *product = inner(Op::multiply, node.operands[2]);
  if (compared == nullptr || product == nullptr || compared->attributes.text("direction") != "GE") return {};
  const ValueId x = node.operands[1];
  if (compared->operands[0] != x || product->operands[0] != x || number(compared->operands[1]) != 0) return {};
  if (std::isnan(number(product->operands[1]))) return {};
  return FoundComposite{Composite::leaky_relu, {x, product->operands[1]}, {compared, product}};
}

}  // namespace tutti::cpu
