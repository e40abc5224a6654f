#include "tutti/graph/cost.h"

#include <limits>

namespace tutti {

namespace {

// Non-negative arithmetic that stays at the maximum.
int64_t times(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}
int64_t plus(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}

int64_t contraction_flops(const Graph& graph, const Node& node) {
  int64_t results = graph.type(node.results[0]).shape.elements(), depth = 1;
  if (node.op == Op::dot_general) {
    for (int64_t axis : node.attributes.ints("lhs_contracting")) depth = times(depth, graph.type(node.operands[0]).shape[axis]);
  } else {  // the kernel [spatial..., c / groups, o] without its last axis
    const Shape& kernel = graph.type(node.operands[1]).shape;
    for (int64_t i = 0; i + 1 < kernel.rank(); ++i) depth = times(depth, kernel[i]);
  }
  return times(2, times(results, depth));
}

int64_t reduction_flops(const Graph& graph, const Node& node) {
  if (node.op == Op::reduce) return graph.type(node.operands[0]).shape.elements();
  int64_t flops = graph.type(node.results[0]).shape.elements();
  for (int64_t extent : node.attributes.ints("window")) flops = times(flops, extent);
  return flops;
}

int64_t flops(const Graph& graph, const Node& node) {
  switch (row(node.op).op_class) {
    case OpClass::leaf:
    case OpClass::movement:
    case OpClass::control: return 0;
    case OpClass::unary:
    case OpClass::binary:
    case OpClass::ternary: return graph.type(node.results[0]).shape.elements();
    case OpClass::reduction: return reduction_flops(graph, node);
    case OpClass::contraction: break;
  }
  return contraction_flops(graph, node);
}

}  // namespace

Cost cost(const Graph& graph, const Node& node) {
  if (node.op == Op::parameter || node.op == Op::constant || node.op == Op::reshape) return {};
  if (node.op == Op::scan) {
    Cost body = cost(*node.body);
    int64_t length = node.attributes.integer("length");
    return {times(body.flops, length), times(body.bytes, length)};
  }
  Cost out{flops(graph, node), 0};
  for (ValueId id : node.operands) out.bytes = plus(out.bytes, graph.type(id).bytes());
  for (ValueId id : node.results) out.bytes = plus(out.bytes, graph.type(id).bytes());
  return out;
}

Cost cost(const Graph& graph) {
  Cost total;
  for (const auto& node : graph.nodes()) {
    Cost one = cost(graph, node);
    total = {plus(total.flops, one.flops), plus(total.bytes, one.bytes)};
  }
  return total;
}

int64_t weight_bytes(const Graph& graph) {
  int64_t total = 0;
  for (const auto& node : graph.nodes())
    if (node.op == Op::parameter && role(node) != Graph::Role::input) total = plus(total, graph.type(node.results[0]).bytes());
  return total;
}

}  // namespace tutti
