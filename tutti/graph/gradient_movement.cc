// Gradient rules of ops that move data: where an element went its cotangent comes back from.
#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/graph/build.h"
#include "tutti/graph/compose.h"
#include "tutti/graph/gradient.h"

namespace tutti::gradient_rules {

namespace {

Value zeros(Graph& graph, const Type& type) { return full(graph, type, 0); }

std::vector<Value> from(const std::vector<Value>& values, size_t first) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first), values.end()};
}

Cotangents first_only(const GradientNode& n, Value first) {
  Cotangents out(n.operands.size());
  out[0] = first;
  return out;
}

ScatterDims as_scatter(const Attributes& a) {
  return {a.ints("offset_dims"),     a.ints("collapsed_slice_dims"), a.ints("operand_batching_dims"), a.ints("start_indices_batching_dims"),
          a.ints("start_index_map"), a.integer("index_vector_dim")};
}

ScatterDims scatter_dims(const Attributes& a) {
  return {a.ints("update_window_dims"),           a.ints("inserted_window_dims"),
          a.ints("input_batching_dims"),          a.ints("scatter_indices_batching_dims"),
          a.ints("scatter_dims_to_operand_dims"), a.integer("index_vector_dim")};
}

// What each update of a scatter covers of the operand, as slices of a gather.
Ints update_slices(const ScatterDims& d, const Shape& operand, const Shape& updates) {
  Ints out;
  size_t window = 0;
  for (int64_t axis = 0; axis < operand.rank(); ++axis) {
    const bool dropped = includes(d.inserted_window_dims, axis) || includes(d.input_batching_dims, axis);
    out.push_back(dropped ? 1 : updates[d.update_window_dims[window++]]);
  }
  return out;
}

// The latest start along each entry of the index vector, in the indices' own dtype and shape; indices are wide enough to hold it.
Value latest_starts(Value indices, const Ints& map, int64_t vector, const Shape& operand, const Ints& sizes) {
  std::vector<int64_t> latest;
  for (int64_t axis : map) latest.push_back(operand[axis] - sizes[static_cast<size_t>(axis)]);
  const Value limits = constant<int64_t>(indices.graph(), {static_cast<int64_t>(latest.size())}, latest);
  if (vector == indices.rank()) return broadcast_in_dim(reshape(limits, {}), indices.shape(), {});
  return broadcast_in_dim(limits, indices.shape(), {vector});
}

// As i64, unsigned ones beyond it at its end.
Value wide_index(Value indices) {
  if (indices.dtype() == DType::u64) indices = tutti::minimum(indices, 9.0e18);
  return convert(indices, DType::i64);
}

// What a scatter read with its own indices gives, `x` of the operand's shape: 0 where an update was left out.
Value read_updates(const GradientNode& n, Value x) {
  const ScatterDims d = scatter_dims(n.node.attributes);
  const Shape &operand = n.x(0).shape(), &updates = n.x(2).shape();
  const Ints sizes = update_slices(d, operand, updates);
  const Value indices = wide_index(n.x(1));
  const Value latest = latest_starts(indices, d.scatter_dims_to_operand_dims, d.index_vector_dim, operand, sizes);
  Value inside = logical_and(compare(indices, 0, Direction::GE), compare(indices, latest, Direction::LE));
  if (d.index_vector_dim < indices.rank()) inside = all(inside, {d.index_vector_dim});
  Ints batch;
  for (int64_t axis = 0; axis < updates.rank(); ++axis)
    if (!includes(d.update_window_dims, axis)) batch.push_back(axis);
  const GatherDims dims{d.update_window_dims,           d.inserted_window_dims, d.input_batching_dims, d.scatter_indices_batching_dims,
                        d.scatter_dims_to_operand_dims, d.index_vector_dim};
  const Value read = gather(x, indices, dims, sizes);
  return select(broadcast_in_dim(inside, updates, batch), read, scalar(n.graph, x.dtype(), 0));
}

}  // namespace

Cotangents broadcasted(const GradientNode& n) {
  const Ints& dimensions = n.node.attributes.ints("dimensions");
  const Shape& shape = n.x().shape();
  Ints repeated, order;  // axes to sum over; the kept ones' places among the operand's axes
  for (int64_t axis = 0; axis < n.y().rank(); ++axis) {
    const auto found = std::find(dimensions.begin(), dimensions.end(), axis);
    const int64_t own = found - dimensions.begin();
    if (found == dimensions.end() || shape[own] != n.y().extent(axis)) {
      repeated.push_back(axis);
    } else {
      order.push_back(own);
    }
  }
  Value sums = repeated.empty() ? n.g() : sum(n.g(), repeated);
  Ints permutation(order.size()), sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) permutation[i] = std::find(order.begin(), order.end(), sorted[i]) - order.begin();
  return {reshape(transpose(sums, permutation), shape)};
}

Cotangents reshaped(const GradientNode& n) { return {reshape(n.g(), n.x().shape())}; }

Cotangents transposed(const GradientNode& n) {
  const Ints& permutation = n.node.attributes.ints("permutation");
  Ints inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return {transpose(n.g(), inverse)};
}

Cotangents sliced(const GradientNode& n) {
  if (n.g().shape().elements() == 0) return {zeros(n.graph, n.x().type())};
  const Ints &start = n.node.attributes.ints("start"), &strides = n.node.attributes.ints("strides");
  Ints high, interior;
  for (size_t i = 0; i < start.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t count = n.g().extent(axis), step = count > 1 ? strides[i] : 1;
    interior.push_back(step - 1);
    high.push_back(n.x().extent(axis) - (start[i] + (count - 1) * step + 1));
  }
  return {pad(n.g(), -0.0, start, high, interior)};  // -0: what is added to it stays as it is, so that neighbours need no addition
}

Cotangents padded(const GradientNode& n) {
  const auto negative = [&](const char* name) {
    Ints out = n.node.attributes.ints(name);
    for (int64_t& entry : out) entry = -entry;
    return out;
  };
  Value inner;
  if (n.x().shape().elements() == 0) {
    inner = zeros(n.graph, n.x().type());
  } else {
    const Value cut = pad(n.g(), 0, negative("low"), negative("high"));
    Ints strides = n.node.attributes.ints("interior");
    for (int64_t& stride : strides) ++stride;
    inner = slice(cut, Ints(strides.size()), cut.shape().extents(), strides);
  }
  if (!n.wanted[1]) return {inner, {}};
  return {inner, sum(n.g(), all_axes(n.g())) - sum(inner, all_axes(inner))};
}

Cotangents concatenated(const GradientNode& n) {
  const int64_t axis = n.node.attributes.integer("dimension");
  Cotangents out;
  int64_t start = 0;
  for (size_t i = 0; i < n.operands.size(); ++i) {
    const int64_t extent = n.x(i).extent(axis);
    out.push_back(n.wanted[i] ? slice_axis(n.g(), axis, start, start + extent) : Value());
    start += extent;
  }
  return out;
}

Cotangents reversed(const GradientNode& n) { return {reverse(n.g(), n.node.attributes.ints("dimensions"))}; }

Cotangents dynamically_sliced(const GradientNode& n) {
  return first_only(n, dynamic_update_slice(zeros(n.graph, n.x().type()), n.g(), from(n.operands, 1)));
}

Cotangents dynamically_updated(const GradientNode& n) {
  const auto starts = from(n.operands, 2);
  Cotangents out = first_only(n, n.wanted[0] ? dynamic_update_slice(n.g(), zeros(n.graph, n.x(1).type()), starts) : Value());
  if (n.wanted[1]) out[1] = dynamic_slice(n.g(), starts, n.x(1).shape().extents());
  return out;
}

// A gather moves starts inside; a scatter leaves out what is outside, so they are moved here.
Cotangents gathered(const GradientNode& n) {
  const ScatterDims dims = as_scatter(n.node.attributes);
  const Value indices = wide_index(n.x(1));
  const Value latest = latest_starts(indices, dims.scatter_dims_to_operand_dims, dims.index_vector_dim, n.x().shape(),
                                     n.node.attributes.ints("slice_sizes"));
  const Value starts = tutti::maximum(tutti::minimum(indices, latest), 0);
  return first_only(n, scatter(zeros(n.graph, n.x().type()), starts, n.g(), dims, "add"));
}

Cotangents scattered(const GradientNode& n) {
  const std::string& kind = n.node.attributes.text("kind");
  const ScatterDims dims = scatter_dims(n.node.attributes);
  if (kind == "add") return {n.g(), {}, n.wanted[2] ? read_updates(n, n.g()) : Value()};
  if (kind != "replace") fail<Unsupported>("differentiate", "scatter of kind '{}' has no gradient rule", kind);
  Cotangents out(3);
  if (n.wanted[0]) out[0] = scatter(n.g(), n.x(1), zeros(n.graph, n.x(2).type()), dims, "replace");
  if (!n.wanted[2]) return out;
  // Of updates to one place the last stays: each leaves its number there, and who finds its own has stayed.
  const Shape& updates = n.x(2).shape();
  const Value numbers = reshape(iota(n.graph, {DType::i64, {updates.elements()}}, 0), updates) + 1;
  const Value last = scatter(full(n.graph, {DType::i64, n.x(0).shape()}, 0), n.x(1), numbers, dims, "replace");
  const Value stayed = compare(read_updates(n, last), numbers, Direction::EQ);
  out[2] = select(stayed, read_updates(n, n.g()), scalar(n.graph, n.g().dtype(), 0));
  return out;
}

// Sorted along with the operands, positions say where each element went; sorted by them, cotangents go back.
Cotangents sorted(const GradientNode& n) {
  const int64_t axis = n.node.attributes.integer("dimension");
  std::vector<Value> moved = n.operands;
  moved.push_back(iota(n.graph, {DType::i32, n.x().shape()}, axis));
  std::vector<Value> back{tutti::sort(moved, axis, n.node.attributes.integer("descending") != 0).back()};
  for (Value cotangent : n.cotangents)
    if (cotangent) back.push_back(cotangent);
  const auto returned = tutti::sort(back, axis);
  Cotangents out;
  size_t next = 1;
  for (Value cotangent : n.cotangents) out.push_back(cotangent ? returned[next++] : Value());
  return out;
}

// What one replica adds is seen by all of them, so its cotangent is the sum of theirs.
Cotangents summed_by_all(const GradientNode& n) {
  std::vector<Value> some;
  for (Value cotangent : n.cotangents)
    if (cotangent) some.push_back(cotangent);
  const auto sums = n.graph.add(Op::all_reduce, some, n.node.attributes);
  Cotangents out;
  size_t next = 0;
  for (Value cotangent : n.cotangents) out.push_back(cotangent ? sums[next++] : Value());
  return out;
}

}  // namespace tutti::gradient_rules
