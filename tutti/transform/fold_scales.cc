#include <algorithm>
#include <unordered_map>

#include "tutti/transform/passes.h"
#include "tutti/transform/simplify.h"

namespace tutti {

namespace {

// A constant without the axes along which it is the same: axis i of `values` lies along axis axes[i] of the value it is combined with.
struct Along {
  Value values;
  Ints axes;
  explicit operator bool() const { return static_cast<bool>(values); }
};

// What was done to `source` with constants, each value on the way having one reader. Behind a product (a convolution or dot_general with a
// constant kernel) that is at most one shift: everything else went into the kernel.
struct Chain {
  struct Step {
    Op op;  // add, subtract, multiply, divide
    Value constant;
  };
  Value source;
  bool product = false;
  std::vector<Step> steps = {};
  // Of a dot_general of two values, whose left one ends a chain behind a product: that value. A number goes there.
  ValueId behind = -1;
};

bool is_scale(Op op) { return op == Op::multiply || op == Op::divide; }

// The axes along which a constant varies.
Ints axes_of(Value constant) {
  Value source = operand_of(constant, Op::broadcast_in_dim);
  if (!source) return axes_not_one(constant.shape());
  Ints out;
  for (int64_t i : axes_not_one(source.shape())) out.push_back(made_by(constant).attributes.ints("dimensions")[static_cast<size_t>(i)]);
  return out;
}

// The axes of a product's kernel that meet axes of its input; nothing when the kernel does not have them all.
std::optional<Ints> kernel_axes_of_input(const Node& node, const Shape& input, const Shape& kernel, const Ints& axes) {
  Ints out;
  for (int64_t axis : axes) {
    if (node.op == Op::dot_general) {
      const Ints& contracting = node.attributes.ints("lhs_contracting");
      auto place = std::find(contracting.begin(), contracting.end(), axis);
      if (place == contracting.end()) return {};
      out.push_back(node.attributes.ints("rhs_contracting")[static_cast<size_t>(place - contracting.begin())]);
      continue;
    }
    const int64_t groups = node.attributes.integer("groups"), last = kernel.rank() - 1;
    const bool depthwise = kernel[last - 1] == 1 && kernel[last] == groups;
    if (axis != input.rank() - 1 || (groups != 1 && !depthwise)) return {};
    out.push_back(groups == 1 ? last - 1 : last);
  }
  return out;
}

// For each axis of a product's kernel the axis of its result, or -1 for those that are summed.
Ints result_axes(const Node& node, int64_t input_rank, int64_t kernel_rank) {
  Ints out(static_cast<size_t>(kernel_rank), -1);
  if (node.op == Op::convolution) {
    out.back() = input_rank - 1;
    return out;
  }
  const Ints& batch = node.attributes.ints("rhs_batch");
  int64_t next = input_rank - static_cast<int64_t>(node.attributes.ints("lhs_contracting").size());  // batch and free axes of the input
  for (int64_t axis = 0; axis < kernel_rank; ++axis) {
    auto place = std::find(batch.begin(), batch.end(), axis);
    if (place != batch.end()) {
      out[static_cast<size_t>(axis)] = place - batch.begin();
    } else if (!includes(node.attributes.ints("rhs_contracting"), axis)) {
      out[static_cast<size_t>(axis)] = next++;
    }
  }
  return out;
}

bool is_unpadded(const Node& node) {
  if (node.op == Op::dot_general) return true;
  const Attributes& a = node.attributes;
  return all_are(a.ints("low"), 0) && all_are(a.ints("high"), 0) && all_are(a.ints("lhs_dilation"), 1);
}

class ScaleFolding {
 public:
  explicit ScaleFolding(const Graph& graph) : rebuild_(graph), uses_(count_uses(graph)), to_(rebuild_.graph()) {}

  Graph run() {
    for (const Node& node : rebuild_.from().nodes()) {
      if (node.body) {
        rebuild_.copy(node, std::make_shared<const Graph>(fold_scales(*node.body)));
      } else if (!fold(node)) {
        rebuild_.copy(node);
      }
    }
    return rebuild_.finish();
  }

 private:
  bool fold(const Node& node) {
    const bool product = node.op == Op::convolution || node.op == Op::dot_general;
    if (!product && !is_scale(node.op) && node.op != Op::add && node.op != Op::subtract) return false;
    if (!is_float(rebuild_.from().type(node.results[0]).dtype)) return false;
    std::vector<Value> operands = rebuild_.operands(node);
    Chain chain;
    Value result;
    if (product && !is_constant(operands[1])) {
      auto found = chains_.find(operands[0].id());
      if (node.op == Op::convolution || found == chains_.end() || !found->second.product) return false;
      result = copy(node, chain);
      chain.behind = found->first;
    } else if (product) {
      result = contract(node, operands, chain);
    } else {
      const size_t varying = is_constant(operands[0]) ? 1 : 0;
      if (is_constant(operands[varying]) || !is_constant(operands[1 - varying])) return false;
      if (varying == 1 && (node.op == Op::subtract || node.op == Op::divide)) return false;
      result = lengthen(node, operands[varying], operands[1 - varying], chain);
    }
    rebuild_.map(node.results[0], result);
    if (uses_[static_cast<size_t>(node.results[0])] == 1) chains_.emplace(result.id(), std::move(chain));
    return true;
  }

  // `node` is x with a constant. `chain` becomes that of the result.
  Value lengthen(const Node& node, Value x, Value constant, Chain& chain) {
    auto found = chains_.find(x.id());
    chain = found == chains_.end() ? Chain{x} : found->second;
    if (chain.behind >= 0 && is_scale(node.op) && axes_of(constant).empty()) return scale_left(node.op, x, constant, chain);
    chain.behind = -1;
    if (!chain.product || (chain.steps.empty() && !is_scale(node.op))) {
      chain.steps.push_back({node.op, constant});
      return copy(node);
    }
    auto axes = kernel_axes_of_result(chain.source, axes_of(constant));
    if (!axes) return copy(node, chain);
    return combined(chain, node.op, along(constant), *axes);
  }

  // A product with at most one shift behind it, combined with a constant along the given axes of the kernel.
  Value combined(Chain& chain, Op op, const Along& number, const Ints& kernel_axes) {
    const Shape shape = chain.source.shape();
    if (is_scale(op)) chain.source = scaled(chain.source, op, number, kernel_axes);
    if (chain.steps.empty()) return chain.source;
    Along shift = along(chain.steps[0].constant);
    if (chain.steps[0].op == Op::subtract) shift = negated(shift);
    return shifted(chain, joined(op, shift, number, shape));
  }

  // dot_general(left, right) with a number, as in attention: left with the number instead.
  Value scale_left(Op op, Value x, Value constant, Chain& chain) {
    const Node node = made_by(x);
    Chain left = chains_.at(chain.behind);
    Value scaled_left = combined(left, op, along(constant), {});
    Value out = to_.graph().add(Op::dot_general, {scaled_left, Value(&to_.graph(), node.operands[1])}, node.attributes)[0];
    chain = Chain{out};
    return out;
  }

  // A product whose input may have been scaled and shifted by constants.
  Value contract(const Node& node, std::vector<Value> operands, Chain& chain) {
    auto found = chains_.find(operands[0].id());
    chain.product = true;
    if (found == chains_.end() || !absorbs(node, operands, found->second)) return chain.source = copy(node);
    const Shape shape = operands[0].shape(), kernel = operands[1].shape();
    Along scale, shift, added;
    for (const Chain::Step& step : found->second.steps) {
      const Along number = along(step.constant);
      if (is_scale(step.op)) {
        scale = scale ? joined(step.op, scale, number, shape) : step.op == Op::multiply ? number : inverse(number);
        if (shift) shift = joined(step.op, shift, number, shape);
      } else if (splat(step.constant) != 0.0) {
        shift = shift ? joined(step.op, shift, number, shape) : step.op == Op::add ? number : negated(number);
      }
    }
    auto times_kernel = [&](const Along& x) {
      Value wide = to_.broadcast(x.values, kernel, *kernel_axes_of_input(node, shape, kernel, x.axes));
      return to_.make(Op::multiply, {operands[1], wide});
    };
    if (shift) added = summed(node, times_kernel(shift), shape.rank());
    if (scale) operands[1] = times_kernel(scale);
    operands[0] = found->second.source;
    chain.source = rebuild_.graph().add(node.op, operands, node.attributes)[0];
    return added ? shifted(chain, added) : chain.source;
  }

  bool absorbs(const Node& node, const std::vector<Value>& operands, const Chain& chain) const {
    if (chain.product) return false;
    return std::all_of(chain.steps.begin(), chain.steps.end(), [&](const Chain::Step& step) {
      bool movable = is_scale(step.op) || is_unpadded(node) || splat(step.constant) == 0.0;
      return movable && kernel_axes_of_input(node, operands[0].shape(), operands[1].shape(), axes_of(step.constant));
    });
  }

  // What a shift of a product's input adds to its result: kernel times shift, summed over what the product sums.
  Along summed(const Node& node, Value products, int64_t input_rank) {
    Ints dimensions, axes;
    const Ints places = result_axes(node, input_rank, products.rank());
    for (size_t axis = 0; axis < places.size(); ++axis) {
      if (places[axis] < 0) {
        dimensions.push_back(static_cast<int64_t>(axis));
      } else {
        axes.push_back(places[axis]);
      }
    }
    return squeezed_along({to_.make(Op::reduce, {products}, {{"kind", std::string("add")}, {"dimensions", dimensions}}), axes});
  }

  // The axes of a product's kernel that lie along axes of its result; nothing when the kernel does not have them all.
  std::optional<Ints> kernel_axes_of_result(Value product, const Ints& axes) const {
    const Node& node = made_by(product);
    const Graph& graph = product.graph();
    const Ints places = result_axes(node, graph.type(node.operands[0]).shape.rank(), graph.type(node.operands[1]).shape.rank());
    Ints out;
    for (int64_t axis : axes) {
      auto place = std::find(places.begin(), places.end(), axis);
      if (place == places.end()) return {};
      out.push_back(place - places.begin());
    }
    return out;
  }

  Value scaled(Value product, Op op, const Along& scale, const Ints& kernel_axes) {
    const Node node = made_by(product);
    Value input(&to_.graph(), node.operands[0]), kernel(&to_.graph(), node.operands[1]);
    const Shape shape = kernel.shape();
    kernel = to_.make(op, {kernel, to_.broadcast(scale.values, shape, kernel_axes)});
    return to_.graph().add(node.op, {input, kernel}, node.attributes)[0];
  }

  // The chain's product plus a shift, which becomes its only step.
  Value shifted(Chain& chain, const Along& shift) {
    const Shape shape = chain.source.shape();
    chain.steps = {{Op::add, to_.broadcast(shift.values, shape, shift.axes)}};
    return to_.graph().add(Op::add, {chain.source, chain.steps[0].constant})[0];
  }

  Value copy(const Node& node) {
    rebuild_.copy(node);
    return rebuild_[node.results[0]];
  }
  // The same as the beginning of a new chain.
  Value copy(const Node& node, Chain& chain) {
    Value out = copy(node);
    chain = Chain{out};
    return out;
  }

  // Arithmetic on constants along axes of `shape`; their values are left to constant folding.
  Along joined(Op op, const Along& a, const Along& b, const Shape& shape) {
    Ints axes = a.axes, extents;
    for (int64_t axis : b.axes)
      if (!includes(axes, axis)) axes.push_back(axis);
    std::sort(axes.begin(), axes.end());
    for (int64_t axis : axes) extents.push_back(shape[axis]);
    auto wide = [&](const Along& x) {
      Ints dimensions;
      for (int64_t axis : x.axes) dimensions.push_back(std::find(axes.begin(), axes.end(), axis) - axes.begin());
      return to_.broadcast(x.values, extents, dimensions);
    };
    Value left = wide(a), right = wide(b);
    return {to_.make(op, {left, right}), axes};
  }
  Along negated(const Along& x) { return {to_.make(Op::negate, {x.values}), x.axes}; }
  Along inverse(const Along& x) {
    Value one = to_.full_like(x.values, 1);
    return {to_.make(Op::divide, {one, x.values}), x.axes};
  }

  Along along(Value constant) {
    if (Value source = operand_of(constant, Op::broadcast_in_dim))
      return squeezed_along({source, Ints(made_by(constant).attributes.ints("dimensions"))});
    Ints axes(static_cast<size_t>(constant.rank()));
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
    return squeezed_along({constant, axes});
  }
  Along squeezed_along(const Along& x) {
    Ints axes;
    for (int64_t i : axes_not_one(x.values.shape())) axes.push_back(x.axes[static_cast<size_t>(i)]);
    return {to_.reshape(x.values, squeezed(x.values.shape())), axes};
  }

  // Whether a value of the new graph is computed from constants and weights alone.
  bool is_constant(Value value) {
    const Graph& graph = rebuild_.graph();
    while (constant_.size() < graph.value_count()) {
      const Node& node = graph.maker(static_cast<ValueId>(constant_.size()));
      bool constant = is_constant_leaf(node) || node.op == Op::iota;
      if (row(node.op).op_class != OpClass::leaf && !node.body)
        constant = std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId i) { return constant_[static_cast<size_t>(i)]; });
      constant_.push_back(constant);
    }
    return constant_[static_cast<size_t>(value.id())];
  }

  Rebuild rebuild_;
  std::vector<int> uses_;
  Simplifier to_;
  std::unordered_map<ValueId, Chain> chains_;  // by value of the new graph; those with one reader
  std::vector<bool> constant_;
};

}  // namespace

Graph fold_scales(const Graph& graph) { return ScaleFolding(graph).run(); }

}  // namespace tutti
