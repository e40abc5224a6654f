#include "tutti/graph/cost.h"

#include <algorithm>

#include "tutti/base/saturate.h"

namespace tutti {

namespace {

int64_t contraction_flops(const Graph& graph, const Node& node) {
  int64_t results = graph.type(node.results[0]).shape.elements(), depth = 1;
  if (node.op == Op::dot_general) {
    for (int64_t axis : node.attributes.ints("lhs_contracting"))
      depth = saturating_multiply(depth, graph.type(node.operands[0]).shape[axis]);
  } else {  // the kernel [spatial..., c / groups, o] without its last axis
    const Shape& kernel = graph.type(node.operands[1]).shape;
    for (int64_t i = 0; i + 1 < kernel.rank(); ++i) depth = saturating_multiply(depth, kernel[i]);
  }
  return saturating_multiply(2, saturating_multiply(results, depth));
}

int64_t reduction_flops(const Graph& graph, const Node& node) {
  if (node.op == Op::reduce) return graph.type(node.operands[0]).shape.elements();
  int64_t flops = graph.type(node.results[0]).shape.elements();
  for (int64_t extent : node.attributes.ints("window")) flops = saturating_multiply(flops, extent);
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

int64_t bytes_read(const Graph& graph, const Node& node, size_t operand) {
  const int64_t all = graph.type(node.operands[operand]).bytes();
  const bool picks = node.op == Op::slice || node.op == Op::dynamic_slice || node.op == Op::gather;
  return picks && operand == 0 ? std::min(all, graph.type(node.results[0]).bytes()) : all;
}

Cost cost(const Graph& graph, const Node& node) {
  if (node.op == Op::parameter || node.op == Op::constant || node.op == Op::reshape || node.op == Op::bitcast_convert) return {};
  if (node.op == Op::scan) {
    Cost body = cost(*node.body);
    int64_t length = node.attributes.integer("length");
    return {saturating_multiply(body.flops, length), saturating_multiply(body.bytes, length)};
  }
  Cost out{flops(graph, node), 0};
  for (size_t i = 0; i < node.operands.size(); ++i) out.bytes = saturating_add(out.bytes, bytes_read(graph, node, i));
  for (ValueId id : node.results) out.bytes = saturating_add(out.bytes, graph.type(id).bytes());
  return out;
}

Cost cost(const Graph& graph) {
  Cost total;
  for (const auto& node : graph.nodes()) {
    Cost one = cost(graph, node);
    total = {saturating_add(total.flops, one.flops), saturating_add(total.bytes, one.bytes)};
  }
  return total;
}

int64_t weight_bytes(const Graph& graph) {
  int64_t total = 0;
  for (const auto& node : graph.nodes())
    if (node.op == Op::parameter && role(node) != Graph::Role::input) total = saturating_add(total, graph.type(node.results[0]).bytes());
  return total;
}

}  // namespace tutti
