#include "tutti/transform/simplify.h"

#include <array>

#include "tutti/graph/build.h"
#include "tutti/transform/passes.h"

namespace tutti {

namespace {

constexpr size_t op_count = static_cast<size_t>(Op::all_reduce) + 1;  // the last one

std::array<std::vector<Rule>, op_count> rules_by_op() {
  std::array<std::vector<Rule>, op_count> out;
  for (auto rows : {arithmetic_rules(), movement_rules(), contraction_rules()})
    for (const RuleRow& row : rows) out[static_cast<size_t>(row.op)].push_back(row.rule);
  for (const OpRow& row : op_table())
    if (is_elementwise(row.op))
      for (Rule rule : {lift_broadcasts, lift_reshapes, lift_transposes, squeeze_constants})
        out[static_cast<size_t>(row.op)].push_back(rule);
  return out;
}

}  // namespace

Value Simplifier::make(Op op, const std::vector<Value>& operands, const Attributes& attributes) {
  static const auto rules = rules_by_op();
  // Rules that undo each other would be our mistake: it costs nodes and not the stack.
  constexpr int deepest = 32;
  Value simpler;
  ++depth_;
  for (Rule rule : rules[static_cast<size_t>(op)])
    if (!simpler && depth_ < deepest) simpler = rule(*this, {op, operands, attributes});
  --depth_;
  return simpler ? simpler : graph_.add(op, operands, attributes)[0];
}

Value Simplifier::reshape(Value x, const Shape& shape) { return make(Op::reshape, {x}, {{"shape", shape.extents()}}); }
Value Simplifier::broadcast(Value x, const Shape& shape, const Ints& dimensions) {
  return make(Op::broadcast_in_dim, {x}, {{"shape", shape.extents()}, {"dimensions", dimensions}});
}
Value Simplifier::transpose(Value x, const Ints& permutation) { return make(Op::transpose, {x}, {{"permutation", permutation}}); }
Value Simplifier::slice(Value x, const Ints& start, const Ints& limit, const Ints& strides) {
  return make(Op::slice, {x}, {{"start", start}, {"limit", limit}, {"strides", strides}});
}
Value Simplifier::full_like(Value like, double number) { return broadcast(scalar(graph_, like.dtype(), number), Shape(like.shape()), {}); }

Graph simplify(const Graph& graph) {
  Rebuild rebuild(graph);
  Simplifier simplifier(rebuild.graph());
  for (const Node& node : graph.nodes()) {
    if (node.body) {
      rebuild.copy(node, std::make_shared<const Graph>(simplify(*node.body)));
    } else if (node.results.size() != 1 || row(node.op).op_class == OpClass::leaf) {
      rebuild.copy(node);
    } else {
      rebuild.map(node.results[0], simplifier.make(node.op, rebuild.operands(node), node.attributes));
    }
  }
  return rebuild.finish();
}

}  // namespace tutti
