#include <algorithm>
#include <cmath>

#include "tutti/transform/passes.h"
#include "tutti/transform/simplify.h"

namespace tutti {

namespace {

// The pad that made a value, when it has no holes and takes nothing away.
struct Padding {
  Value source, number;
  Ints low, high;
};

std::optional<Padding> padding_of(Value value) {
  Value source = operand_of(value, Op::pad);
  if (!source) return {};
  const Attributes& a = made_by(value).attributes;
  Padding out{source, operand_of(value, Op::pad, 1), a.ints("low"), a.ints("high")};
  bool plain = all_are(a.ints("interior"), 0) && *std::min_element(out.low.begin(), out.low.end()) >= 0 &&
               *std::min_element(out.high.begin(), out.high.end()) >= 0;
  return plain ? std::optional(out) : std::nullopt;
}

Ints sums(Ints a, const Ints& b, size_t first) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i + first];
  return a;
}

Value convolution(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  auto pad = padding_of(operands[0]);
  if (!pad || splat(pad->number) != 0.0 || !all_are(node.attributes.ints("lhs_dilation"), 1)) return {};
  if (pad->low.front() + pad->high.front() + pad->low.back() + pad->high.back() != 0) return {};  // batch and channels
  Attributes attributes = node.attributes;
  attributes.set("low", sums(attributes.ints("low"), pad->low, 1));
  attributes.set("high", sums(attributes.ints("high"), pad->high, 1));
  return graph.add(Op::convolution, {pad->source, operands[1]}, attributes)[0];
}

// Whether every window along every axis holds an element of the unpadded value.
bool windows_see_data(const Shape& source, const Shape& result, const Attributes& a, const Ints& low) {
  for (int64_t axis = 0; axis < source.rank(); ++axis) {
    auto at = static_cast<size_t>(axis);
    int64_t reach = (a.ints("window")[at] - 1) * a.ints("window_dilation")[at];
    int64_t last = (result[axis] - 1) * a.ints("strides")[at];  // where the last window begins, padding included
    if (a.ints("window_dilation")[at] != 1 && low[at] != 0) return false;
    if (reach < low[at] || last - low[at] >= source[axis]) return false;
  }
  return true;
}

// The result of a maximum with 0: 0 or more, or NaN.
bool is_rectified(Value value) {
  if (never_negative(value)) return true;
  Value other = operand_of(value, Op::maximum);
  return other && (splat(other) == 0.0 || splat(operand_of(value, Op::maximum, 1)) == 0.0);
}

Value max_pool(Graph& graph, const Node& node, const std::vector<Value>& operands, const Shape& result) {
  auto pad = padding_of(operands[0]);
  const Attributes& a = node.attributes;
  if (!pad || a.text("kind") != "max" || !is_float(operands[0].dtype()) || !all_are(a.ints("base_dilation"), 1)) return {};
  auto number = splat(pad->number);
  if (!number) return {};
  Ints low = sums(a.ints("low"), pad->low, 0), high = sums(a.ints("high"), pad->high, 0);
  bool least = *number == -std::numeric_limits<double>::infinity();
  bool beaten = *number == 0 && is_rectified(pad->source) && windows_see_data(pad->source.shape(), result, a, low);
  if (!least && !beaten) return {};
  Attributes attributes = a;
  attributes.set("low", low);
  attributes.set("high", high);
  return graph.add(Op::reduce_window, {pad->source}, attributes)[0];
}

}  // namespace

Graph fold_padding(const Graph& graph) {
  Rebuild rebuild(graph);
  for (const Node& node : graph.nodes()) {
    Value folded;
    if (node.op == Op::convolution) folded = convolution(rebuild.graph(), node, rebuild.operands(node));
    if (node.op == Op::reduce_window) folded = max_pool(rebuild.graph(), node, rebuild.operands(node), graph.type(node.results[0]).shape);
    if (folded) {
      rebuild.map(node.results[0], folded);
    } else {
      rebuild.copy(node, node.body ? std::make_shared<const Graph>(fold_padding(*node.body)) : nullptr);
    }
  }
  return rebuild.finish();
}

}  // namespace tutti
