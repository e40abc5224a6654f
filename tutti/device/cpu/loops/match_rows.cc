#include "tutti/device/cpu/loops/match_rows.h"

#include <algorithm>
#include <set>

#include "tutti/device/bytes.h"
#include "tutti/device/cpu/loops/rows.h"

namespace tutti::cpu {

namespace {

using Found = std::optional<ValueId>;

// Walks from a result to its operands and notes the nodes on the way.
class RowMatcher {
 public:
  RowMatcher(const Graph& graph, const Node& root) : graph_(graph), root_(root) {}

  std::optional<RowMatch> match() {
    if (root_.results.size() != 1 || type(root_.results[0]).dtype != DType::f32) return {};
    using Try = bool (RowMatcher::*)();
    for (Try attempt : {&RowMatcher::softmax, &RowMatcher::log_softmax, &RowMatcher::layer_norm, &RowMatcher::rms_norm}) {
      match_ = {};
      nodes_ = {&root_};
      first_reduced_ = -1;
      if ((this->*attempt)()) return finished();
    }
    return {};
  }

 private:
  const Type& type(ValueId id) const { return graph_.type(id); }

  // The node that makes a value, if it is of that op. Notes it.
  const Node* made_by(Op op, ValueId id) {
    const Node& node = graph_.maker(id);
    if (node.op != op) return nullptr;
    nodes_.insert(&node);
    return &node;
  }

  // Sees through reshapes, and through what only stops gradients.
  ValueId without_reshape(ValueId id) {
    const Node* node = made_by(Op::reshape, id);
    if (node == nullptr) node = made_by(Op::bitcast_convert, id);
    return node == nullptr || type(node->operands[0]).dtype != type(id).dtype ? id : without_reshape(node->operands[0]);
  }

  // What a broadcast to x's shape repeats: one value a row, or one value a place of the row.
  enum class Along { rows, places };
  Found repeated(Along along, ValueId id) {
    if (along == Along::places && rows() == 1 && row_of(id)) return id;
    const Node* node = made_by(Op::broadcast_in_dim, id);
    if (node == nullptr || !(type(id).shape == x_shape())) return {};
    const Shape& from = type(node->operands[0]).shape;
    const Ints& dimensions = node->attributes.ints("dimensions");
    int64_t elements = 1;
    if (!std::is_sorted(dimensions.begin(), dimensions.end())) return {};
    for (size_t i = 0; i < dimensions.size(); ++i) {
      const int64_t extent = from[static_cast<int64_t>(i)];
      if (extent != 1 && (dimensions[i] < first_reduced_) != (along == Along::rows)) return {};
      elements *= extent;
    }
    return elements == (along == Along::rows ? rows() : length()) ? Found(node->operands[0]) : Found();
  }

  // Whether the value is as large as x, and no broadcast.
  bool row_of(ValueId id) const { return type(id).shape == x_shape() && graph_.maker(id).op != Op::broadcast_in_dim; }

  // The operand of a reduction over trailing axes; the first reduction of a match says which.
  Found reduced(const char* kind, ValueId id) {
    const Node* node = made_by(Op::reduce, without_reshape(id));
    if (node == nullptr || node->attributes.text("kind") != kind) return {};
    Ints axes = node->attributes.ints("dimensions");
    std::sort(axes.begin(), axes.end());
    const int64_t rank = type(node->operands[0]).shape.rank();
    if (axes.empty() || axes.front() != rank - static_cast<int64_t>(axes.size())) return {};
    if (first_reduced_ >= 0 && axes.front() != first_reduced_) return {};
    first_reduced_ = axes.front();
    return node->operands[0];
  }

  // A number that stands for all elements.
  std::optional<float> number(ValueId id) {
    while (const Node* node = made_by(Op::broadcast_in_dim, id)) id = node->operands[0];
    const Node* node = made_by(Op::constant, id);
    if (node == nullptr || node->literal.shape().elements() != 1 || node->literal.dtype() != DType::f32) return {};
    return node->literal.as<float>()[0];
  }

  // The operand of a mean: a sum divided by the length of a row, or times its inverse where that is exact.
  Found mean_of(ValueId id) {
    id = without_reshape(id);
    const Node* node = made_by(Op::divide, id);
    const bool divided = node != nullptr;
    if (!divided) node = made_by(Op::multiply, id);
    Found x = node != nullptr ? reduced("add", node->operands[0]) : Found();
    if (!x) return {};
    const auto length = static_cast<float>(length_of(*x));
    return number(node->operands[1]) == (divided ? length : 1 / length) ? x : Found();
  }

  // first - (the maximum of first), or nothing.
  Found below_maximum(ValueId id) {
    const Node* node = made_by(Op::subtract, id);
    if (node == nullptr) return {};
    const Node* repeat = made_by(Op::broadcast_in_dim, node->operands[1]);
    if (repeat == nullptr || reduced("max", repeat->operands[0]) != node->operands[0]) return {};
    return repeated(Along::rows, node->operands[1]) ? Found(node->operands[0]) : Found();
  }

  bool softmax() {
    if (root_.op != Op::divide) return false;
    const Node* powers = made_by(Op::exponential, root_.operands[0]);
    Found x = powers != nullptr ? below_maximum(powers->operands[0]) : Found();
    Found sum = x ? repeated(Along::rows, root_.operands[1]) : Found();
    if (!sum || reduced("add", *sum) != root_.operands[0]) return false;
    return found(RowMatch::Kind::softmax, *x);
  }

  bool log_softmax() {
    if (root_.op != Op::subtract) return false;
    Found x = below_maximum(root_.operands[0]);
    Found rest = x ? repeated(Along::rows, root_.operands[1]) : Found();
    const Node* logarithm = rest ? made_by(Op::log, without_reshape(*rest)) : nullptr;
    Found powers = logarithm != nullptr ? reduced("add", logarithm->operands[0]) : Found();
    const Node* power = powers ? made_by(Op::exponential, *powers) : nullptr;
    if (power == nullptr || power->operands[0] != root_.operands[0]) return false;
    return found(RowMatch::Kind::log_softmax, *x);
  }

  // 1 / sqrt(mean of squares + epsilon), one a row: gives what is squared.
  Found inverse_deviation(ValueId id) {
    const Node* root = made_by(Op::rsqrt, without_reshape(id));
    const Node* sum = root != nullptr ? made_by(Op::add, root->operands[0]) : nullptr;
    std::optional<float> epsilon = sum != nullptr ? number(sum->operands[1]) : std::nullopt;
    Found squares = epsilon ? mean_of(sum->operands[0]) : Found();
    const Node* square = squares ? made_by(Op::multiply, *squares) : nullptr;
    if (square == nullptr || square->operands[0] != square->operands[1]) return {};
    match_.epsilon = *epsilon;
    return square->operands[0];
  }

  // x - its mean.
  Found centered(ValueId id) {
    const Node* node = made_by(Op::subtract, id);
    const Node* repeat = node != nullptr ? made_by(Op::broadcast_in_dim, node->operands[1]) : nullptr;
    if (repeat == nullptr || mean_of(repeat->operands[0]) != node->operands[0]) return {};
    return repeated(Along::rows, node->operands[1]) ? Found(node->operands[0]) : Found();
  }

  // The factor of a norm: the inverse deviation, one a row, times a scale or not. Gives what is squared. The operand of the reduction comes
  // first: it says what a row is.
  Found factor(ValueId id) {
    if (const Node* product = made_by(Op::multiply, id)) {
      const Node* repeat = made_by(Op::broadcast_in_dim, product->operands[0]);
      Found squared = repeat != nullptr ? inverse_deviation(repeat->operands[0]) : Found();
      Found scale = squared && repeated(Along::rows, product->operands[0]) ? repeated(Along::places, product->operands[1]) : Found();
      if (!scale) return {};
      scale_ = *scale;
      match_.has_scale = true;
      return squared;
    }
    const Node* repeat = made_by(Op::broadcast_in_dim, id);
    Found squared = repeat != nullptr ? inverse_deviation(repeat->operands[0]) : Found();
    return squared && repeated(Along::rows, id) ? squared : Found();
  }

  bool is_negative_mean(ValueId id, ValueId x) {
    const Node* negative = made_by(Op::negate, without_reshape(id));
    return negative != nullptr && mean_of(negative->operands[0]) == x;
  }

  // x * factor + (-mean * factor [+ offset])
  bool layer_norm() {
    if (root_.op != Op::add) return false;
    const Node* product = made_by(Op::multiply, root_.operands[0]);
    Found squared = product != nullptr ? factor(product->operands[1]) : Found();
    if (!squared || centered(*squared) != product->operands[0]) return false;
    const ValueId x = product->operands[0];
    ValueId rest = root_.operands[1];
    if (const Node* sum = made_by(Op::add, rest)) {
      Found offset = repeated(Along::places, sum->operands[1]);
      if (!offset) return false;
      offset_ = *offset;
      match_.has_offset = true;
      rest = sum->operands[0];
    }
    // The mean times the factor at its own shape, or repeated as a whole.
    if (!match_.has_scale) {
      Found whole = repeated(Along::rows, rest);
      const Node* shift = whole ? made_by(Op::multiply, without_reshape(*whole)) : nullptr;
      if (shift == nullptr || !is_negative_mean(shift->operands[0], x)) return false;
      const Node* repeat = made_by(Op::broadcast_in_dim, product->operands[1]);
      return without_reshape(shift->operands[1]) == without_reshape(repeat->operands[0]) && found(RowMatch::Kind::layer_norm, x);
    }
    const Node* shift = made_by(Op::multiply, rest);
    if (shift == nullptr || shift->operands[1] != product->operands[1]) return false;
    Found negative = repeated(Along::rows, shift->operands[0]);
    return negative && is_negative_mean(*negative, x) && found(RowMatch::Kind::layer_norm, x);
  }

  // x * inverse root of the mean square * scale
  bool rms_norm() {
    if (root_.op != Op::multiply) return false;
    const Node* product = made_by(Op::multiply, root_.operands[0]);
    const Node* repeat = product != nullptr ? made_by(Op::broadcast_in_dim, product->operands[1]) : nullptr;
    if (repeat == nullptr || inverse_deviation(repeat->operands[0]) != product->operands[0]) return false;
    Found scale = repeated(Along::rows, product->operands[1]) ? repeated(Along::places, root_.operands[1]) : Found();
    if (!scale) return false;
    scale_ = *scale;
    match_.has_scale = true;
    return found(RowMatch::Kind::rms_norm, product->operands[0]);
  }

  bool found(RowMatch::Kind kind, ValueId x) {
    match_.kind = kind;
    match_.operands = {x};
    return type(x).shape == x_shape() && type(x).dtype == DType::f32;
  }

  RowMatch finished() {
    match_.rows = rows();
    match_.length = length();
    if (match_.has_scale) match_.operands.push_back(scale_);
    if (match_.has_offset) match_.operands.push_back(offset_);
    // Leaves and what only makes operands are no part of it.
    for (ValueId id : match_.operands) forget(id);
    for (const Node* node : nodes_)
      if (row(node->op).op_class != OpClass::leaf) match_.nodes.push_back(node);
    std::sort(match_.nodes.begin(), match_.nodes.end());  // nodes lie in the graph in topological order
    return match_;
  }

  void forget(ValueId id) {
    const Node* node = &graph_.maker(id);
    nodes_.erase(node);
  }

  const Shape& x_shape() const { return type(root_.results[0]).shape; }
  int64_t length_of(ValueId x) const {
    int64_t elements = 1;
    for (int64_t i = first_reduced_; i < type(x).shape.rank(); ++i) elements *= type(x).shape[i];
    return elements;
  }
  int64_t length() const { return length_of(root_.results[0]); }
  int64_t rows() const {
    int64_t elements = 1;
    for (int64_t i = 0; i < first_reduced_; ++i) elements *= x_shape()[i];
    return elements;
  }

  const Graph& graph_;
  const Node& root_;
  RowMatch match_;
  std::set<const Node*> nodes_;
  int64_t first_reduced_ = -1;
  ValueId scale_ = -1, offset_ = -1;
};

}  // namespace

std::optional<RowMatch> match_rows(const Graph& graph, const Node& root) { return RowMatcher(graph, root).match(); }

Kernel make_rows(const RowMatch& match, int threads) {
  using Kind = RowMatch::Kind;
  const auto rows = match.rows, length = match.length;
  if (match.kind == Kind::softmax || match.kind == Kind::log_softmax) {
    const auto run = match.kind == Kind::softmax ? softmax : log_softmax;
    return {[=](const Pointers& p) { run(floats(p.operands[0]), rows, length, floats(p.results[0]), threads); }, 0};
  }
  Normalization how{.scale = nullptr, .offset = nullptr, .epsilon = match.epsilon, .centered = match.kind == Kind::layer_norm};
  return {[=, has_scale = match.has_scale, has_offset = match.has_offset](const Pointers& p) {
            Normalization now = how;
            if (has_scale) now.scale = floats(p.operands[1]);
            if (has_offset) now.offset = floats(p.operands[has_scale ? 2 : 1]);
            normalize(floats(p.operands[0]), rows, length, now, floats(p.results[0]), threads);
          },
          0};
}

}  // namespace tutti::cpu
