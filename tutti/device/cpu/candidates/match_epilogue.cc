#include "tutti/device/cpu/candidates/match_epilogue.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tutti/device/cpu/loops/composites.h"

namespace tutti::cpu {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The axes of a result: products, rows, columns.
struct Axes {
  int64_t rows = 0, columns;  // the first of the rows, of the columns
  bool exact;                 // no axis belongs to two of them
  Axes(const Shape& shape, int64_t column_count, int64_t product_count) : columns(shape.rank()) {
    int64_t found_columns = 1, found_products = 1;
    while (columns > 0 && found_columns < column_count) found_columns *= shape[--columns];
    while (rows < columns && found_products < product_count) found_products *= shape[rows++];
    exact = found_columns == column_count && found_products == product_count;
  }
  bool is_row(int64_t axis) const { return axis >= rows && axis < columns; }
};

// A value of one element a column of each product, repeated along the axes between them: what is repeated.
std::optional<ValueId> vector_of_columns(const Selection& selection, ValueId id, int64_t columns, int64_t products) {
  const Shape& shape = selection.type(id).shape;
  const Axes axes(shape, columns, products);
  const Node& node = selection.node(selection.graph().producer(id));
  const auto is_vector = [&] {
    const Shape& from = selection.type(node.operands[0]).shape;
    const Ints& dimensions = node.attributes.ints("dimensions");
    if (from.elements() != columns * products || !std::is_sorted(dimensions.begin(), dimensions.end())) return false;
    for (size_t i = 0; i < dimensions.size(); ++i)
      if (from[static_cast<int64_t>(i)] != 1 && axes.is_row(dimensions[i])) return false;
    return true;
  };
  if (node.op == Op::broadcast_in_dim && is_vector()) return node.operands[0];
  return shape.elements() == columns * products ? std::optional(id) : std::nullopt;
}

class Matcher {
 public:
  Matcher(const Selection& selection, ValueId value, int64_t columns, int64_t products, BiasOf bias)
      : selection_(selection), columns_(columns), products_(products), bias_(bias) {
    match_.result = value;
  }

  EpilogueMatch match() {
    while (step()) {
    }
    return std::move(match_);
  }

 private:
  // One more node, if it can be part of the epilogue.
  bool step() {
    if (closed_) return false;
    if (selection_.users(match_.result) > 1) return composite();
    int32_t user = selection_.single_user(match_.result);
    if (user < 0) return false;
    const Node& node = selection_.node(user);
    // The same elements in the same order, and the last axes are the columns as before, of one matrix.
    if (node.op == Op::reshape && products_ == 1 && Axes(selection_.type(node.results[0]).shape, columns_, 1).exact) {
      take(user, "");
      return true;
    }
    if (node.results.size() != 1 || !(selection_.type(node.results[0]) == selection_.type(match_.result))) return false;
    switch (node.op) {
      case Op::add: return add(user, other(node));
      case Op::select: return gate(user, node);
      case Op::maximum:
      case Op::minimum: return bound(user, node.op == Op::maximum, selection_.number(other(node)));
      case Op::logistic: return activation(user, Activation::sigmoid, "+sigmoid");
      case Op::tanh: return activation(user, Activation::tanh, "+tanh");
      default: return false;
    }
  }

  ValueId other(const Node& node) const { return node.operands[node.operands[0] == match_.result ? 1 : 0]; }

  void take(int32_t node, std::string_view name) {
    match_.nodes.push_back(node);
    match_.result = selection_.node(node).results[0];
    match_.name += name;
  }

  bool activation(int32_t node, Activation kind, std::string_view name) {
    if (match_.epilogue.activation != Activation::none) return false;
    match_.epilogue.activation = kind;
    take(node, name);
    closed_ = true;
    return true;
  }

  bool add(int32_t node, ValueId term) {
    if (match_.epilogue.activation != Activation::none || term == match_.result) return false;
    if (!match_.bias && !match_.bias_from && !match_.residual) {
      const auto vector = vector_of_columns(selection_, term, columns_, products_);
      if (vector) match_.bias = selection_.known(*vector);
      if (!match_.bias) match_.bias = shared_bias(term);
      if (!match_.bias && bias_ == BiasOf::anything) match_.bias_from = vector;
      if (match_.bias || match_.bias_from) {
        take(node, "+bias");
        return true;
      }
    }
    const bool is_repeated =
        selection_.node(selection_.graph().producer(term)).op == Op::broadcast_in_dim;  // read where it lies, by others
    if (match_.residual || (bias_ == BiasOf::anything && is_repeated) || selection_.number(term) ||
        !(selection_.type(term) == selection_.type(match_.result)))
      return false;
    match_.residual = term;
    take(node, "+residual");
    return true;
  }

  // A known vector that several columns or products share, for each of them.
  std::optional<Tensor> shared_bias(ValueId term) const {
    const Node& node = selection_.node(selection_.graph().producer(term));
    const auto shared = node.op == Op::broadcast_in_dim ? selection_.known(node.operands[0]) : std::nullopt;
    if (!shared || shared->dtype() != DType::f32) return {};
    const Shape& shape = selection_.type(term).shape;
    const Axes axes(shape, columns_, products_);
    if (!axes.exact) return {};
    const Ints &dimensions = node.attributes.ints("dimensions"), from = shared->shape().strides();
    Ints steps(static_cast<size_t>(shape.rank()), 0);
    for (size_t i = 0; i < dimensions.size(); ++i) {
      if (shared->shape()[static_cast<int64_t>(i)] == 1) continue;
      if (axes.is_row(dimensions[i])) return {};
      steps[static_cast<size_t>(dimensions[i])] = from[i];
    }
    Tensor all(DType::f32, {products_, columns_});
    for (int64_t i = 0; i < products_ * columns_; ++i) {
      int64_t rest = i, at = 0;
      for (int64_t axis = shape.rank(); axis-- > 0;) {
        if (axes.is_row(axis)) continue;
        at += rest % shape[axis] * steps[static_cast<size_t>(axis)];
        rest /= shape[axis];
      }
      all.as<float>()[static_cast<size_t>(i)] = shared->as<float>()[static_cast<size_t>(at)];
    }
    return all;
  }

  // select(residual > 0, value, 0)
  bool gate(int32_t node, const Node& select) {
    const Node& above = selection_.node(selection_.graph().producer(select.operands[0]));
    if (bias_ != BiasOf::anything || match_.residual || match_.epilogue.activation != Activation::none) return false;
    if (select.operands[1] != match_.result || selection_.number(select.operands[2]) != 0.0 || above.op != Op::compare) return false;
    if (above.attributes.text("direction") != "GT" || selection_.number(above.operands[1]) != 0.0) return false;
    if (!(selection_.type(above.operands[0]) == selection_.type(match_.result))) return false;
    match_.residual = above.operands[0];
    return activation(node, Activation::gate, "+gate");
  }

  // maximum then minimum: low <= high, or the order would matter.
  bool bound(int32_t node, bool lower, std::optional<double> number) {
    Epilogue& e = match_.epilogue;
    if (!number || std::isnan(*number) || (e.activation != Activation::none && e.activation != Activation::clip)) return false;
    if (e.activation == Activation::none) e.low = -infinity, e.high = infinity;
    const float bound = static_cast<float>(*number);
    if (lower ? e.low != -infinity || bound > e.high : e.high != infinity || bound < e.low) return false;
    (lower ? e.low : e.high) = bound;
    e.activation = Activation::clip;
    take(node, lower && bound == 0 ? "+relu" : "+clip");
    return true;
  }

  // An activation of several nodes, which read the value more than once and come together in one.
  bool composite() {
    if (match_.epilogue.activation != Activation::none) return false;
    const std::vector<int32_t> nodes = until_they_meet();
    if (nodes.empty()) return false;
    std::vector<const Node*> pointers;
    for (int32_t node : nodes) pointers.push_back(&selection_.node(node));
    const Node& last = *pointers.back();
    if (!(selection_.type(last.results[0]) == selection_.type(match_.result))) return false;
    for (const FoundComposite& found : CompositeFinder(selection_.graph(), pointers, last.results).find(last)) {
      if (found.inside.size() + 1 != nodes.size() || found.operands[0] != match_.result) continue;
      auto [kind, name] = activation_of(found.composite);
      if (kind == Activation::none) continue;
      if (kind == Activation::leaky_relu) match_.epilogue.alpha = static_cast<float>(selection_.number(found.operands[1]).value());
      match_.nodes.insert(match_.nodes.end(), nodes.begin(), nodes.end() - 1);
      return activation(nodes.back(), kind, name);
    }
    return false;
  }

  static std::pair<Activation, std::string_view> activation_of(Composite composite) {
    switch (composite) {
      case Composite::silu: return {Activation::silu, "+silu"};
      case Composite::gelu: return {Activation::gelu, "+gelu"};
      case Composite::hard_silu: return {Activation::hard_swish, "+hard_silu"};
      case Composite::leaky_relu: return {Activation::leaky_relu, "+leaky_relu"};
      default: return {Activation::none, ""};
    }
  }

  // The value's readers and what follows each of them alone, as far as the first node that all of them reach; none when they do not meet.
  std::vector<int32_t> until_they_meet() const {
    constexpr size_t most = 8;          // nodes on a path
    std::map<int32_t, size_t> reached;  // from how many readers
    std::set<int32_t> readers(selection_.readers(match_.result).begin(), selection_.readers(match_.result).end());
    for (int32_t node : readers) {
      if (node < 0 || !selection_.is_free(node)) return {};
      for (size_t length = 0; node >= 0 && length < most; ++length) {
        ++reached[node];
        node = selection_.node(node).results.size() == 1 ? selection_.single_user(selection_.node(node).results[0]) : -1;
      }
    }
    std::vector<int32_t> nodes;
    for (const auto& [node, count] : reached) {
      nodes.push_back(node);
      if (count == readers.size()) return nodes;
    }
    return {};
  }

  const Selection& selection_;
  int64_t columns_, products_;
  BiasOf bias_;
  EpilogueMatch match_{};
  bool closed_ = false;
};

}  // namespace

Step step_with_epilogue(std::string_view kernel, int32_t node, std::vector<ValueId> operands, const EpilogueMatch& match) {
  Step step{std::string(kernel) + match.name, {node}, std::move(operands), {match.result}};
  step.nodes.insert(step.nodes.end(), match.nodes.begin(), match.nodes.end());
  if (match.residual) step.operands.push_back(*match.residual);
  if (match.bias_from) step.operands.push_back(*match.bias_from);
  return step;
}

EpilogueMatch match_epilogue(const Selection& selection, ValueId value, int64_t columns, int64_t products, BiasOf bias) {
  return Matcher(selection, value, columns, products, bias).match();
}

}  // namespace tutti::cpu
