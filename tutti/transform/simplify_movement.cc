// Rules for ops that move data. Reshapes and broadcasts get one form. What a broadcast stretches has no axes of extent 1 there: a sum over
// rows is broadcast back from its own shape at any batch size. Constants have no axes of extent 1 at all, and a broadcast puts them in
// place, even if it only inserts axes: a bias looks the same at any batch size.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "tutti/transform/simplify.h"

namespace tutti {

namespace {

Ints identity(int64_t rank) {
  Ints out(static_cast<size_t>(rank));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

Ints picked(const Ints& from, const Ints& indices) {
  Ints out;
  for (int64_t i : indices) out.push_back(from[static_cast<size_t>(i)]);
  return out;
}

Value reshape(Simplifier& to, const Candidate& node) {
  const Shape shape(node.attributes.ints("shape"));
  if (node[0].shape() == shape) return node[0];
  if (Value source = operand_of(node[0], Op::reshape)) return to.reshape(source, shape);
  Value source = operand_of(node[0], Op::broadcast_in_dim);
  if (!source) return {};
  if (source.shape().elements() == 1) return to.broadcast(to.reshape(source, {}), shape, {});
  // Only axes of extent 1 come or go: the broadcast goes to the new shape at once.
  if (!(squeezed(shape) == squeezed(node[0].shape())) || squeezed(source.shape()).rank() != source.rank()) return {};
  const Ints before = axes_not_one(node[0].shape()), after = axes_not_one(shape);
  Ints dimensions;
  for (int64_t axis : made_by(node[0]).attributes.ints("dimensions"))
    dimensions.push_back(after[static_cast<size_t>(std::find(before.begin(), before.end(), axis) - before.begin())]);
  return to.broadcast(source, shape, dimensions);
}

Value broadcast(Simplifier& to, const Candidate& node) {
  const Shape shape(node.attributes.ints("shape"));
  const Ints& dimensions = node.attributes.ints("dimensions");
  Value x = node[0];
  if (x.shape() == shape && dimensions == identity(x.rank())) return x;
  const bool constant = is_plain_constant(x);
  Ints extents, places;  // of the axes of x that are not dropped
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    int64_t place = dimensions[static_cast<size_t>(axis)];
    if (x.shape()[axis] == 1 && (constant || shape[place] != 1)) continue;
    extents.push_back(x.shape()[axis]);
    places.push_back(place);
  }
  if (!constant && x.shape().elements() == shape.elements() && std::is_sorted(places.begin(), places.end())) return to.reshape(x, shape);
  if (Value source = operand_of(x, Op::broadcast_in_dim))
    return to.broadcast(source, shape, picked(dimensions, Ints(made_by(x).attributes.ints("dimensions"))));
  if (static_cast<int64_t>(extents.size()) != x.rank()) return to.broadcast(to.reshape(x, extents), shape, places);
  return {};
}

Value transpose(Simplifier& to, const Candidate& node) {
  const Ints& permutation = node.attributes.ints("permutation");
  Value x = node[0];
  if (permutation == identity(x.rank())) return x;
  if (Value source = operand_of(x, Op::transpose))
    return to.transpose(source, picked(made_by(x).attributes.ints("permutation"), permutation));
  Ints moved;  // axes that matter
  for (int64_t axis : permutation)
    if (x.shape()[axis] != 1) moved.push_back(axis);
  const Shape shape = picked(x.shape().extents(), permutation);
  if (std::is_sorted(moved.begin(), moved.end())) return to.reshape(x, shape);
  Value source = operand_of(x, Op::broadcast_in_dim);
  if (!source) return {};
  Ints dimensions;
  for (int64_t axis : made_by(x).attributes.ints("dimensions"))
    dimensions.push_back(std::find(permutation.begin(), permutation.end(), axis) - permutation.begin());
  return to.broadcast(source, shape, dimensions);
}

bool takes_all(const Shape& shape, const Ints& start, const Ints& limit, const Ints& strides, int64_t axis) {
  auto at = static_cast<size_t>(axis);
  return start[at] == 0 && limit[at] == shape[axis] && strides[at] == 1;
}

Shape sliced_shape(const Ints& start, const Ints& limit, const Ints& strides) {
  Ints out;
  for (size_t i = 0; i < start.size(); ++i) out.push_back(limit[i] == start[i] ? 0 : (limit[i] - start[i] - 1) / strides[i] + 1);
  return out;
}

Value slice_of_concatenate(Simplifier& to, Value x, Ints start, Ints limit, const Ints& strides) {
  auto axis = static_cast<size_t>(made_by(x).attributes.integer("dimension"));
  for (ValueId id : std::vector<ValueId>(made_by(x).operands)) {
    Value part(&to.graph(), id);
    int64_t extent = part.shape()[static_cast<int64_t>(axis)];
    if (start[axis] >= 0 && limit[axis] <= extent) return to.slice(part, start, limit, strides);
    start[axis] -= extent;
    limit[axis] -= extent;
  }
  return {};
}

Value slice(Simplifier& to, const Candidate& node) {
  const Ints &start = node.attributes.ints("start"), &limit = node.attributes.ints("limit"), &strides = node.attributes.ints("strides");
  Value x = node[0];
  bool all = true;
  for (int64_t axis = 0; axis < x.rank(); ++axis) all &= takes_all(x.shape(), start, limit, strides, axis);
  if (all) return x;
  const Shape shape = sliced_shape(start, limit, strides);
  if (shape.elements() == 0) return {};
  if (Value source = operand_of(x, Op::slice)) {
    Ints first = made_by(x).attributes.ints("start"), end = first, steps = made_by(x).attributes.ints("strides");
    for (size_t i = 0; i < first.size(); ++i) {
      first[i] += start[i] * steps[i];
      const int64_t count = shape[static_cast<int64_t>(i)];
      steps[i] = count == 1 ? 1 : steps[i] * strides[i];  // a step that is never taken may be of any size
      end[i] = first[i] + (count - 1) * steps[i] + 1;
    }
    return to.slice(source, first, end, steps);
  }
  if (made_by(x).op == Op::concatenate) return slice_of_concatenate(to, x, start, limit, strides);
  Value source = operand_of(x, Op::broadcast_in_dim);
  if (!source) return {};
  const Ints dimensions = made_by(x).attributes.ints("dimensions");
  for (int64_t axis : dimensions)
    if (!takes_all(x.shape(), start, limit, strides, axis)) return {};
  return to.broadcast(source, shape, dimensions);
}

Value dynamic_slice(Simplifier& to, const Candidate& node) {
  const Ints& sizes = node.attributes.ints("sizes");
  Ints start, limit;
  for (size_t i = 1; i < node.operands.size(); ++i) {
    auto known = splat(node[i]);
    if (!known) return {};
    auto last = static_cast<double>(node[0].shape()[static_cast<int64_t>(i) - 1] - sizes[i - 1]);
    start.push_back(static_cast<int64_t>(std::clamp(*known, 0.0, last)));  // starts beyond the operand are moved inside
    limit.push_back(start.back() + sizes[i - 1]);
  }
  return to.slice(node[0], start, limit, Ints(sizes.size(), 1));
}

Value concatenate(Simplifier& to, const Candidate& node) {
  int64_t axis = node.attributes.integer("dimension");
  std::vector<Value> parts;
  for (Value part : node.operands)
    if (part.shape()[axis] != 0) parts.push_back(part);
  if (parts.empty() || node.operands.size() == 1) return node[0];
  return parts.size() == node.operands.size() ? Value() : to.make(Op::concatenate, parts, node.attributes);
}

bool are_all(const Ints& list, int64_t wanted) {
  return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == wanted; });
}

Value pad(Simplifier& to, const Candidate& node) {
  Ints low = node.attributes.ints("low"), high = node.attributes.ints("high");
  const Ints interior = node.attributes.ints("interior");
  if (!are_all(interior, 0)) return {};
  if (are_all(low, 0) && are_all(high, 0)) return node[0];
  Value source = operand_of(node[0], Op::pad);
  auto outer = splat(node[1]);
  if (!source || !outer) return {};
  auto inner = splat(Value(&to.graph(), made_by(node[0]).operands[1]));
  const Attributes& before = made_by(node[0]).attributes;
  if (!inner || *inner != *outer || std::signbit(*inner) != std::signbit(*outer) || !are_all(before.ints("interior"), 0)) return {};
  for (size_t i = 0; i < low.size(); ++i) {
    if (std::min({low[i], high[i], before.ints("low")[i], before.ints("high")[i]}) < 0) return {};
    low[i] += before.ints("low")[i];
    high[i] += before.ints("high")[i];
  }
  return to.make(Op::pad, {source, node[1]}, {{"low", low}, {"high", high}, {"interior", interior}});
}

// -0, which changes nothing that it is added to, in front of and behind a value, along one axis.
struct Padded {
  Value x;
  size_t axis;
  int64_t low, high;
  int64_t extent() const { return x.shape()[static_cast<int64_t>(axis)]; }
};
std::optional<Padded> padded_by_zeros(Value value) {
  const Node& made = made_by(value);
  if (made.op != Op::pad || !are_all(made.attributes.ints("interior"), 0)) return {};
  const auto number = splat(Value(&value.graph(), made.operands[1]));
  if (number != 0.0 || (is_float(value.dtype()) && !std::signbit(*number))) return {};
  const Ints &low = made.attributes.ints("low"), &high = made.attributes.ints("high");
  std::optional<Padded> out;
  for (size_t axis = 0; axis < low.size(); ++axis) {
    if (low[axis] == 0 && high[axis] == 0) continue;
    if (out || low[axis] < 0 || high[axis] < 0) return {};
    out = {Value(&value.graph(), made.operands[0]), axis, low[axis], high[axis]};
  }
  return out;
}

// Where one operand has zeros for what the other one has, side by side: the gradient of what was cut into slices.
Value sum_of_neighbours(Simplifier& to, const Candidate& node) {
  auto first = padded_by_zeros(node[0]), second = padded_by_zeros(node[1]);
  if (!first || !second || first->axis != second->axis) return {};
  if (first->low > second->low) std::swap(first, second);
  if (first->low + first->extent() != second->low) return {};
  const auto dimension = static_cast<int64_t>(first->axis);
  std::vector<Value> parts;
  for (Value x : {first->x, second->x}) {
    const Node& made = made_by(x);
    const bool joined = made.op == Op::concatenate && made.attributes.integer("dimension") == dimension;
    if (!joined) parts.push_back(x);
    for (size_t i = 0; joined && i < made.operands.size(); ++i) parts.emplace_back(&x.graph(), made.operands[i]);
  }
  Value both = to.make(Op::concatenate, parts, {{"dimension", dimension}});
  const Ints zeros(static_cast<size_t>(both.rank()), 0);
  Ints low = zeros, high = zeros;
  low[first->axis] = first->low;
  high[first->axis] = second->high;
  const Value zero(&to.graph(), made_by(node[0]).operands[1]);
  return to.make(Op::pad, {both, zero}, {{"low", low}, {"high", high}, {"interior", zeros}});
}

Value reverse(Simplifier& to, const Candidate& node) {
  Ints dimensions;
  for (int64_t axis : node.attributes.ints("dimensions"))
    if (node[0].shape()[axis] != 1) dimensions.push_back(axis);
  if (dimensions.empty()) return node[0];
  if (dimensions.size() != node.attributes.ints("dimensions").size()) return to.make(Op::reverse, {node[0]}, {{"dimensions", dimensions}});
  Value source = operand_of(node[0], Op::reverse);
  return source && made_by(node[0]).attributes.ints("dimensions") == dimensions ? source : Value();
}

Value slice_of_transpose(Simplifier& to, const Candidate& node) { return below_transpose(to, node, {"start", "limit", "strides"}); }
Value pad_of_transpose(Simplifier& to, const Candidate& node) { return below_transpose(to, node, {"low", "high", "interior"}); }

// Neighbouring slices of one value, put together again.
Value concatenate_of_slices(Simplifier& to, const Candidate& node) {
  const auto axis = static_cast<size_t>(node.attributes.integer("dimension"));
  struct Part {
    Value source;
    Ints start, limit;
  };
  std::vector<Value> parts;
  std::optional<Part> open;  // the last part, as a slice
  const auto slice_of = [&](Value x) -> std::optional<Part> {
    const Node& made = made_by(x);
    if (made.op != Op::slice || !are_all(made.attributes.ints("strides"), 1)) return {};
    return Part{Value(&x.graph(), made.operands[0]), made.attributes.ints("start"), made.attributes.ints("limit")};
  };
  const auto continues = [&](const Part& before, const Part& next) {
    Ints start = next.start, limit = before.limit;
    if (before.source.id() != next.source.id() || limit[axis] != start[axis]) return false;
    start[axis] = before.start[axis];
    limit[axis] = next.limit[axis];
    return start == before.start && limit == next.limit;
  };
  const auto close = [&] {
    if (open && !parts.back()) parts.back() = to.slice(open->source, open->start, open->limit, Ints(open->start.size(), 1));
  };
  for (Value operand : node.operands) {
    const auto part = slice_of(operand);
    if (part && open && continues(*open, *part)) {
      open->limit = part->limit;
      parts.back() = {};  // made below, from what is open
    } else {
      close();
      parts.push_back(operand);
      open = part;
    }
  }
  close();
  if (parts.size() == node.operands.size()) return {};
  return parts.size() == 1 ? parts[0] : to.make(Op::concatenate, parts, node.attributes);
}

Value concatenate_of_transposes(Simplifier& to, const Candidate& node) {
  if (!operand_of(node[0], Op::transpose)) return {};
  const Ints permutation = made_by(node[0]).attributes.ints("permutation");
  std::vector<Value> sources;
  for (Value part : node.operands) {
    sources.push_back(operand_of(part, Op::transpose));
    if (!sources.back() || made_by(part).attributes.ints("permutation") != permutation) return {};
  }
  int64_t axis = permutation[static_cast<size_t>(node.attributes.integer("dimension"))];
  return to.transpose(to.make(Op::concatenate, sources, {{"dimension", axis}}), permutation);
}

}  // namespace

std::span<const RuleRow> movement_rules() {
  static constexpr RuleRow rows[] = {
      {Op::reshape, reshape},
      {Op::broadcast_in_dim, broadcast},
      {Op::transpose, transpose},
      {Op::slice, slice},
      {Op::dynamic_slice, dynamic_slice},
      {Op::concatenate, concatenate},
      {Op::concatenate, concatenate_of_slices},
      {Op::pad, pad},
      {Op::add, sum_of_neighbours},
      {Op::reverse, reverse},
      {Op::slice, slice_of_transpose},
      {Op::pad, pad_of_transpose},
      {Op::concatenate, concatenate_of_transposes},
  };
  return rows;
}

Ints inverse_of(const Ints& permutation) {
  Ints out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) out[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return out;
}

Value below_transpose(Simplifier& to, const Candidate& node, std::initializer_list<const char*> names) {
  Value source = operand_of(node[0], Op::transpose);
  if (!source) return {};
  const Ints permutation = made_by(node[0]).attributes.ints("permutation"), inverse = inverse_of(permutation);
  Attributes attributes = node.attributes;
  for (const char* name : names) attributes.set(name, picked(node.attributes.ints(name), inverse));
  std::vector<Value> operands = node.operands;
  operands[0] = source;
  return to.transpose(to.make(node.op, operands, attributes), permutation);
}

}  // namespace tutti
