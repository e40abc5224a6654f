// Rules for reductions and dot_general.
#include <algorithm>

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
    (contains(node.attributes.ints("dimensions"), static_cast<int64_t>(i)) ? reduced : kept).push_back(permutation[i]);
  const bool rounds = is_float(source.dtype()) && kind != "max" && kind != "min";
  if (!std::is_sorted(kept.begin(), kept.end()) || (rounds && !std::is_sorted(reduced.begin(), reduced.end()))) return {};
  std::sort(reduced.begin(), reduced.end());
  return to.make(Op::reduce, {source}, {{"kind", kind}, {"dimensions", reduced}});
}

// Axes of extent 1 are not reduced but dropped. A sum of one element is that element plus 0, which makes 0 of -0.
Value reduce(Simplifier& to, const Candidate& node) {
  const std::string kind = node.attributes.text("kind");
  Value x = node[0];
  Ints kept_extents, summed;  // of x without its reduced axes of extent 1; the other reduced axes in there
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    bool reduced = contains(node.attributes.ints("dimensions"), axis);
    if (reduced && x.shape()[axis] == 1) continue;
    if (reduced) summed.push_back(static_cast<int64_t>(kept_extents.size()));
    kept_extents.push_back(x.shape()[axis]);
  }
  if (!summed.empty()) {
    if (summed.size() == node.attributes.ints("dimensions").size()) return reduce_untransposed(to, node);
    return to.make(Op::reduce, {to.reshape(x, kept_extents)}, {{"kind", kind}, {"dimensions", summed}});
  }
  Value same = to.reshape(x, kept_extents);
  if (kind != "add" || !is_float(x.dtype()) || never_negative(x)) return same;
  return to.make(Op::add, {same, to.full_like(same, 0)});
}

// Whether axes that matter stand side by side, once those of `between` are taken out.
bool adjacent(const Shape& shape, Ints axes, const Ints& between) {
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i + 1 < axes.size(); ++i)
    for (int64_t axis = axes[i] + 1; axis < axes[i + 1]; ++axis)
      if (shape[axis] != 1 && !contains(between, axis)) return false;
  return true;
}

// A transposed operand is read through its axes instead, where the operand still is a matrix for each batch.
Value absorb_transpose(Simplifier& to, const Candidate& node, size_t side, const char* batch_name, const char* contracting_name) {
  Value source = operand_of(node[side], Op::transpose);
  if (!source) return {};
  const Ints permutation = made_by(node[side]).attributes.ints("permutation");
  auto through = [&](const Ints& axes) {
    Ints out;
    for (int64_t axis : axes) out.push_back(permutation[static_cast<size_t>(axis)]);
    return out;
  };
  const Ints batch = through(node.attributes.ints(batch_name)), contracting = through(node.attributes.ints(contracting_name));
  Ints free;  // in the order of the result
  for (int64_t axis : permutation)
    if (!contains(batch, axis) && !contains(contracting, axis)) free.push_back(axis);
  if (!std::is_sorted(free.begin(), free.end()) || !std::is_sorted(contracting.begin(), contracting.end())) return {};
  if (!adjacent(source.shape(), free, batch) || !adjacent(source.shape(), contracting, batch)) return {};
  Attributes attributes = node.attributes;
  attributes.set(batch_name, batch);
  attributes.set(contracting_name, contracting);
  std::vector<Value> operands = node.operands;
  operands[side] = source;
  return to.make(Op::dot_general, operands, attributes);
}

Value dot_general(Simplifier& to, const Candidate& node) {
  Value out = absorb_transpose(to, node, 0, "lhs_batch", "lhs_contracting");
  return out ? out : absorb_transpose(to, node, 1, "rhs_batch", "rhs_contracting");
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

constexpr RuleRow rows[] = {{Op::reduce, reduce}, {Op::reduce_window, window_of_transpose}, {Op::dot_general, dot_general}};

}  // namespace

std::span<const RuleRow> contraction_rules() { return rows; }

}  // namespace tutti
