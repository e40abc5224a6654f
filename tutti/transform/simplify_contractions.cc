// Rules for reductions and dot_general.
#include <algorithm>
#include <optional>

#include "tutti/graph/matrix.h"
#include "tutti/transform/simplify.h"

namespace tutti {

namespace {

// A reduction reads its axes wherever they are, if those that it keeps stay in order; sums only if they are added up in the same order.
Value reduce_untransposed(Simplifier& to, const Candidate& node) {
  const std::string kind = node.attributes.text("kind");
  Value source = operand_of(node[0], Op::transpose);
  if (!source) return {};
  Ints kept, reduced;
  const Ints permutation = made_by(node[0]).attributes.ints("permutation");
  for (size_t i = 0; i < permutation.size(); ++i)
    (includes(node.attributes.ints("dimensions"), static_cast<int64_t>(i)) ? reduced : kept).push_back(permutation[i]);
  const bool rounds = is_float(source.dtype()) && kind != "max" && kind != "min";
  if (!std::is_sorted(kept.begin(), kept.end()) || (rounds && !std::is_sorted(reduced.begin(), reduced.end()))) return {};
  std::sort(reduced.begin(), reduced.end());
  return to.make(Op::reduce, {source}, {{"kind", kind}, {"dimensions", reduced}});
}

// A sum of one element is that element plus 0, which makes 0 of -0.
Value of_one_element(Simplifier& to, Value x, std::string_view kind) {
  if (kind != "add" || !is_float(x.dtype()) || never_negative(x)) return x;
  return to.make(Op::add, {x, to.full_like(x, 0)});
}

// Axes of extent 1 are not reduced but dropped.
Value reduce(Simplifier& to, const Candidate& node) {
  const std::string kind = node.attributes.text("kind");
  Value x = node[0];
  Ints kept_extents, summed;  // of x without its reduced axes of extent 1; the other reduced axes in there
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    bool reduced = includes(node.attributes.ints("dimensions"), axis);
    if (reduced && x.shape()[axis] == 1) continue;
    if (reduced) summed.push_back(static_cast<int64_t>(kept_extents.size()));
    kept_extents.push_back(x.shape()[axis]);
  }
  if (!summed.empty()) {
    if (summed.size() == node.attributes.ints("dimensions").size()) return reduce_untransposed(to, node);
    return to.make(Op::reduce, {to.reshape(x, kept_extents)}, {{"kind", kind}, {"dimensions", summed}});
  }
  return of_one_element(to, to.reshape(x, kept_extents), kind);
}

// One side of a dot_general, and its attributes' names.
struct Side {
  size_t operand;
  const char *batch, *contracting;
};
constexpr Side left{0, "lhs_batch", "lhs_contracting"}, right{1, "rhs_batch", "rhs_contracting"};

// Whether an operand is a matrix for each place of the batch, the left one with contiguous rows: what fast kernels read where it lies.
bool is_matrix(const Side& side, const Shape& shape, const Ints& batch, const Ints& contracting) {
  if (shape.elements() == 0) return true;
  auto depth = as_one_axis(shape, contracting);
  return depth && (side.operand == 1 || depth->stride == 1) && as_one_axis(shape, free_axes(shape.rank(), batch, contracting));
}

Value with_operand(Simplifier& to, const Candidate& node, const Side& side, Value operand, const Ints& batch, const Ints& contracting) {
  Attributes attributes = node.attributes;
  attributes.set(side.batch, batch);
  attributes.set(side.contracting, contracting);
  std::vector<Value> operands = node.operands;
  operands[side.operand] = operand;
  return to.make(Op::dot_general, operands, attributes);
}

// A transposed operand is read through its axes instead, where it is a matrix that way too.
Value absorb_transpose(Simplifier& to, const Candidate& node, const Side& side) {
  Value source = operand_of(node[side.operand], Op::transpose);
  if (!source) return {};
  const Ints permutation = made_by(node[side.operand]).attributes.ints("permutation");
  auto through = [&](const Ints& axes) {
    Ints out;
    for (int64_t axis : axes) out.push_back(permutation[static_cast<size_t>(axis)]);
    return out;
  };
  const Ints batch = through(node.attributes.ints(side.batch)), contracting = through(node.attributes.ints(side.contracting));
  const Ints free = through(free_axes(source.rank(), node.attributes.ints(side.batch), node.attributes.ints(side.contracting)));
  if (!std::is_sorted(free.begin(), free.end()) || !is_matrix(side, source.shape(), batch, contracting)) return {};
  return with_operand(to, node, side, source, batch, contracting);
}

// An operand that is no matrix is transposed into one.
Value straighten(Simplifier& to, const Candidate& node, const Side& side) {
  Value x = node[side.operand];
  const Ints &batch = node.attributes.ints(side.batch), &contracting = node.attributes.ints(side.contracting);
  if (is_matrix(side, x.shape(), batch, contracting)) return {};
  const Ints free = free_axes(x.rank(), batch, contracting);
  Ints permutation, new_batch, new_contracting;
  auto append = [&](const Ints& axes, Ints* places) {
    for (int64_t axis : axes) {
      if (places != nullptr) places->push_back(static_cast<int64_t>(permutation.size()));
      permutation.push_back(axis);
    }
  };
  append(batch, &new_batch);
  if (side.operand == 0) append(free, nullptr);
  append(contracting, &new_contracting);
  if (side.operand == 1) append(free, nullptr);
  return with_operand(to, node, side, to.transpose(x, permutation), new_batch, new_contracting);
}

Value dot_general(Simplifier& to, const Candidate& node) {
  for (auto rule : {absorb_transpose, straighten})
    for (const Side& side : {left, right})
      if (Value out = rule(to, node, side)) return out;
  return {};
}

// Windows of one element take each stride's first.
Value window_of_one(Simplifier& to, const Candidate& node) {
  const Ints none(static_cast<size_t>(node[0].rank()), 0), one(none.size(), 1);
  const Attributes& given = node.attributes;
  if (given.ints("window") != one || given.ints("base_dilation") != one || given.ints("low") != none || given.ints("high") != none)
    return {};
  return of_one_element(to, to.slice(node[0], none, node[0].shape().extents(), given.ints("strides")), given.text("kind"));
}

// The order in which a window is walked only matters where sums round.
Value window_of_transpose(Simplifier& to, const Candidate& node) {
  const Ints permutation = operand_of(node[0], Op::transpose) ? made_by(node[0]).attributes.ints("permutation") : Ints();
  Ints walked;  // where the axes of the window come from
  for (size_t i = 0; i < permutation.size(); ++i)
    if (node.attributes.ints("window")[i] != 1) walked.push_back(permutation[i]);
  if (!std::is_sorted(walked.begin(), walked.end())) return {};
  return below_transpose(to, node, {"window", "strides", "base_dilation", "window_dilation", "low", "high"});
}

}  // namespace

std::span<const RuleRow> contraction_rules() {
  static constexpr RuleRow rows[] = {
      {Op::reduce, reduce}, {Op::reduce_window, window_of_one}, {Op::reduce_window, window_of_transpose}, {Op::dot_general, dot_general}};
  return rows;
}

}  // namespace tutti
