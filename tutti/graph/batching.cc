#include "tutti/graph/batching.h"

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"

namespace tutti {

Value repeat_for_models(Value x, int64_t models) {
  Ints extents{models}, dimensions;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    extents.push_back(x.extent(axis));
    dimensions.push_back(axis + 1);
  }
  return broadcast_in_dim(x, extents, dimensions);
}

Value BatchedNode::stacked(size_t i) const {
  return operands[i].stacked ? operands[i].value : repeat_for_models(operands[i].value, models);
}

std::vector<Batched> batch(const BatchedNode& node) {
  for (const Batched& operand : node.operands)
    if (operand.stacked) return row(node.node.op).batch(node);
  std::vector<Value> operands;
  for (const Batched& operand : node.operands) operands.push_back(operand.value);
  std::vector<Batched> out;
  for (Value value : node.to.add(node.node.op, operands, node.node.attributes, node.node.body)) out.push_back({value, false});
  return out;
}

namespace batching_rules {

namespace {

std::vector<Batched> all_stacked(const std::vector<Value>& values) {
  std::vector<Batched> out;
  for (Value value : values) out.push_back({value, true});
  return out;
}

std::vector<Value> stacked_operands(const BatchedNode& node) {
  std::vector<Value> out;
  for (size_t i = 0; i < node.operands.size(); ++i) out.push_back(node.stacked(i));
  return out;
}

// The node with other attributes, all of its operands stacked.
std::vector<Batched> with(const BatchedNode& node, const Attributes& attributes) {
  return all_stacked(node.to.add(node.node.op, stacked_operands(node), attributes));
}

// Axes of one model, counted with the axis of models before them; lists with an entry for that axis too.
Ints shifted(Ints axes) {
  for (int64_t& axis : axes) ++axis;
  return axes;
}

Ints preceded(int64_t first, Ints entries) {
  entries.insert(entries.begin(), first);
  return entries;
}

Ints shifted(const BatchedNode& node, const char* name) { return shifted(node.node.attributes.ints(name)); }
Ints preceded(int64_t first, const BatchedNode& node, const char* name) { return preceded(first, node.node.attributes.ints(name)); }

Ints from_to(int64_t first, int64_t end) {
  Ints out;
  for (int64_t i = first; i < end; ++i) out.push_back(i);
  return out;
}

bool any_stacked(const BatchedNode& node, size_t first) {
  for (size_t i = first; i < node.operands.size(); ++i)
    if (node.operands[i].stacked) return true;
  return false;
}

// The scalar operands from `first` on as index vectors, a row a model: [models, count].
Value start_vectors(const BatchedNode& node, size_t first) {
  std::vector<Value> columns;
  for (size_t i = first; i < node.operands.size(); ++i) columns.push_back(convert(node.stacked(i), DType::i64));
  return stack(columns, 1);
}

}  // namespace

std::vector<Batched> leaf(const BatchedNode& node) { fail<InternalError>("batching", "{} has no operands", name(node.node.op)); }

std::vector<Batched> elementwise(const BatchedNode& node) { return with(node, node.node.attributes); }

// Operands keep their shapes, so each may have the axis of models or not.
std::vector<Batched> summed_by_all(const BatchedNode& node) {
  std::vector<Value> operands;
  for (const Batched& operand : node.operands) operands.push_back(operand.value);
  const std::vector<Value> results = node.to.add(Op::all_reduce, operands, node.node.attributes);
  std::vector<Batched> out;
  for (size_t i = 0; i < results.size(); ++i) out.push_back({results[i], node.operands[i].stacked});
  return out;
}

std::vector<Batched> broadcasted(const BatchedNode& node) {
  return with(node, {{"shape", preceded(node.models, node, "shape")}, {"dimensions", preceded(0, shifted(node, "dimensions"))}});
}

std::vector<Batched> reshaped(const BatchedNode& node) { return with(node, {{"shape", preceded(node.models, node, "shape")}}); }

std::vector<Batched> transposed(const BatchedNode& node) {
  return with(node, {{"permutation", preceded(0, shifted(node, "permutation"))}});
}

std::vector<Batched> sliced(const BatchedNode& node) {
  return with(
      node,
      {{"start", preceded(0, node, "start")}, {"limit", preceded(node.models, node, "limit")}, {"strides", preceded(1, node, "strides")}});
}

std::vector<Batched> padded(const BatchedNode& node) {
  const Attributes attributes{
      {"low", preceded(0, node, "low")}, {"high", preceded(0, node, "high")}, {"interior", preceded(0, node, "interior")}};
  const auto pad = [&](Value x, Value with) { return node.to.add(Op::pad, {x, with}, attributes)[0]; };
  const Value x = node.stacked(0), value = node.operands[1].value;
  if (!node.operands[1].stacked) return all_stacked({pad(x, value)});
  // Each model pads with its own number: a mask says where.
  const Value inside = pad(full(node.to, {DType::boolean, x.shape()}, 1), scalar(node.to, DType::boolean, 0));
  const Value whole = pad(x, scalar(node.to, x.dtype(), 0));
  return all_stacked({select(inside, whole, broadcast_in_dim(value, whole.shape(), {0}))});
}

std::vector<Batched> concatenated(const BatchedNode& node) {
  return with(node, {{"dimension", node.node.attributes.integer("dimension") + 1}});
}

std::vector<Batched> reversed(const BatchedNode& node) { return with(node, {{"dimensions", shifted(node, "dimensions")}}); }

std::vector<Batched> sorted(const BatchedNode& node) {
  return with(node,
              {{"dimension", node.node.attributes.integer("dimension") + 1}, {"descending", node.node.attributes.integer("descending")}});
}

std::vector<Batched> dynamically_sliced(const BatchedNode& node) {
  const Ints& sizes = node.node.attributes.ints("sizes");
  const auto rank = static_cast<int64_t>(sizes.size());
  const auto [x, stacked] = node.operands[0];
  if (!any_stacked(node, 1)) {
    std::vector<Value> starts{scalar(node.to, rank > 0 ? node.operands[1].value.dtype() : DType::i32, 0)};
    for (size_t i = 1; i < node.operands.size(); ++i) starts.push_back(node.operands[i].value);
    return all_stacked({dynamic_slice(x, starts, preceded(node.models, sizes))});
  }
  const Value starts = start_vectors(node, 1);
  if (!stacked) return all_stacked({gather(x, starts, {from_to(1, rank + 1), {}, {}, {}, from_to(0, rank), 1}, sizes)});
  return all_stacked({gather(x, starts, {from_to(1, rank + 1), {}, {0}, {0}, from_to(1, rank + 1), 1}, preceded(1, sizes))});
}

std::vector<Batched> dynamically_updated(const BatchedNode& node) {
  const Value x = node.stacked(0), update = node.stacked(1);
  const int64_t rank = x.rank() - 1;
  if (!any_stacked(node, 2)) {
    std::vector<Value> starts{scalar(node.to, rank > 0 ? node.operands[2].value.dtype() : DType::i32, 0)};
    for (size_t i = 2; i < node.operands.size(); ++i) starts.push_back(node.operands[i].value);
    return all_stacked({dynamic_update_slice(x, update, starts)});
  }
  // Scatter leaves out what is outside, so starts are moved inside before, as dynamic_update_slice does.
  Ints latest;
  for (int64_t axis = 1; axis <= rank; ++axis) latest.push_back(x.extent(axis) - update.extent(axis));
  const Value limit = constant<int64_t>(node.to, {rank}, latest);
  const Value starts = maximum(minimum(start_vectors(node, 2), limit), 0);
  return all_stacked({scatter(x, starts, update, {from_to(1, rank + 1), {}, {0}, {0}, from_to(1, rank + 1), 1}, "replace")});
}

std::vector<Batched> gathered(const BatchedNode& node) {
  const Attributes& a = node.node.attributes;
  const auto [table, table_stacked] = node.operands[0];
  const auto [indices, indices_stacked] = node.operands[1];
  GatherDims dims{a.ints("offset_dims"),           a.ints("collapsed_slice_dims"),
                  a.ints("operand_batching_dims"), a.ints("start_indices_batching_dims"),
                  a.ints("start_index_map"),       a.integer("index_vector_dim")};
  Ints sizes = a.ints("slice_sizes");
  dims.offset_dims = shifted(dims.offset_dims);
  if (table_stacked)
    for (Ints* axes : {&dims.collapsed_slice_dims, &dims.operand_batching_dims, &dims.start_index_map}) *axes = shifted(*axes);
  if (indices_stacked) {
    dims.start_indices_batching_dims = shifted(dims.start_indices_batching_dims);
    ++dims.index_vector_dim;
  }
  if (table_stacked && indices_stacked) {
    dims.operand_batching_dims = preceded(0, dims.operand_batching_dims);
    dims.start_indices_batching_dims = preceded(0, dims.start_indices_batching_dims);
    sizes = preceded(1, sizes);
  } else if (table_stacked) {  // the same places of every model's table
    dims.offset_dims = preceded(0, dims.offset_dims);
    sizes = preceded(node.models, sizes);
  }
  return all_stacked({gather(table, indices, dims, sizes)});
}

std::vector<Batched> scattered(const BatchedNode& node) {
  const Attributes& a = node.node.attributes;
  const ScatterDims dims{shifted(node, "update_window_dims"),
                         shifted(node, "inserted_window_dims"),
                         preceded(0, shifted(node, "input_batching_dims")),
                         preceded(0, shifted(node, "scatter_indices_batching_dims")),
                         shifted(node, "scatter_dims_to_operand_dims"),
                         a.integer("index_vector_dim") + 1};
  return all_stacked({scatter(node.stacked(0), node.stacked(1), node.stacked(2), dims, a.text("kind"))});
}

std::vector<Batched> reduced(const BatchedNode& node) {
  return with(node, {{"kind", node.node.attributes.text("kind")}, {"dimensions", shifted(node, "dimensions")}});
}

std::vector<Batched> windowed(const BatchedNode& node) {
  return with(node, {{"kind", node.node.attributes.text("kind")},
                     {"window", preceded(1, node, "window")},
                     {"strides", preceded(1, node, "strides")},
                     {"base_dilation", preceded(1, node, "base_dilation")},
                     {"window_dilation", preceded(1, node, "window_dilation")},
                     {"low", preceded(0, node, "low")},
                     {"high", preceded(0, node, "high")}});
}

// One side with models: they are one more axis that is kept, which makes one wider product of all of them.
std::vector<Batched> dotted(const BatchedNode& node) {
  const Attributes& a = node.node.attributes;
  DotDims dims{a.ints("lhs_batch"), a.ints("rhs_batch"), a.ints("lhs_contracting"), a.ints("rhs_contracting")};
  const auto [left, left_stacked] = node.operands[0];
  const auto [right, right_stacked] = node.operands[1];
  const auto shared = static_cast<int64_t>(dims.lhs_batch.size());
  const int64_t left_kept = left.rank() - shared - static_cast<int64_t>(dims.lhs_contracting.size());
  if (left_stacked)
    for (Ints* axes : {&dims.lhs_batch, &dims.lhs_contracting}) *axes = shifted(*axes);
  if (right_stacked)
    for (Ints* axes : {&dims.rhs_batch, &dims.rhs_contracting}) *axes = shifted(*axes);
  if (left_stacked && right_stacked) {
    dims.lhs_batch = preceded(0, dims.lhs_batch);
    dims.rhs_batch = preceded(0, dims.rhs_batch);
    return all_stacked({dot_general(left, right, dims)});
  }
  const Value product = dot_general(left, right, dims);
  return all_stacked({moveaxis(product, {left_stacked ? shared : shared + left_kept}, {0})});
}

namespace {

// [..., groups * n] -> [..., groups, n]
Value split_last(Value x, int64_t groups) {
  Ints extents = x.shape().extents();
  extents.back() /= groups;
  extents.insert(extents.end() - 1, groups);
  return reshape(x, extents);
}

Value join_last(Value x) {
  Ints extents = x.shape().extents();
  const int64_t last = extents.back();
  extents.pop_back();
  extents.back() *= last;
  return reshape(x, extents);
}

// [models, a, ..., channels] -> [a, ..., models * channels], and back.
Value models_into_channels(Value x) { return join_last(moveaxis(x, {0}, {-2})); }
Value models_out_of_channels(Value x, int64_t models) { return moveaxis(split_last(x, models), {-2}, {0}); }

}  // namespace

std::vector<Batched> convolved(const BatchedNode& node) {
  const Attributes& a = node.node.attributes;
  ConvolutionDims dims{a.ints("strides"),      a.ints("low"),          a.ints("high"),
                       a.ints("lhs_dilation"), a.ints("rhs_dilation"), a.integer("groups")};
  const auto [input, input_stacked] = node.operands[0];
  const auto [kernel, kernel_stacked] = node.operands[1];
  const int64_t groups = dims.groups;
  if (!kernel_stacked) {  // models are samples
    Ints extents = input.shape().extents();
    extents.erase(extents.begin());
    extents[0] *= node.models;
    const Value out = convolution(reshape(input, extents), kernel, dims);
    extents = out.shape().extents();
    extents[0] /= node.models;
    return all_stacked({reshape(out, preceded(node.models, extents))});
  }
  if (input_stacked) {  // models are groups
    dims.groups = groups * node.models;
    return all_stacked({models_out_of_channels(convolution(models_into_channels(input), models_into_channels(kernel), dims), node.models)});
  }
  if (groups == 1) return all_stacked({models_out_of_channels(convolution(input, models_into_channels(kernel), dims), node.models)});
  // Each group makes the channels of all models.
  const Value by_group = moveaxis(split_last(kernel, groups), {0}, {-2});  // [..., groups, models, n]
  const Value out = convolution(input, join_last(join_last(by_group)), dims);
  const Value parts = split_last(split_last(out, groups), node.models);  // [..., groups, models, n]
  return all_stacked({join_last(moveaxis(parts, {-2}, {0}))});
}

namespace {

struct BatchedBody {
  Graph graph;
  std::vector<bool> stacked;  // by output
};

// `stacked` by parameter; the first outputs are carries, which go in as they come out.
BatchedBody batched_body(const Graph& body, const std::vector<bool>& stacked, size_t carries, int64_t models) {
  BatchedBody out;
  std::vector<Batched> values(body.value_count());
  size_t parameter = 0;
  for (const Node& node : body.nodes()) {
    const Type& type = body.type(node.results[0]);
    Batched& first = values[at(node.results[0])];
    if (node.op == Op::parameter && role(node) == Graph::Role::input) {
      first.stacked = stacked[parameter++];
      Type own{type.dtype, first.stacked ? Shape(preceded(models, type.shape.extents())) : type.shape};
      first.value = out.graph.input(node.attributes.text("name"), own);
    } else if (row(node.op).op_class == OpClass::leaf) {
      first.value = copy_leaf(out.graph, body, node);
    } else {
      BatchedNode inner{out.graph, node, models, {}};
      for (ValueId id : node.operands) inner.operands.push_back(values[at(id)]);
      const auto results = batch(inner);
      for (size_t i = 0; i < results.size(); ++i) values[at(node.results[i])] = results[i];
    }
  }
  for (size_t i = 0; i < body.outputs().size(); ++i) {
    auto [value, is_stacked] = values[at(body.outputs()[i].value)];
    if (i < carries && stacked[i] && !is_stacked) {
      value = repeat_for_models(value, models);
      is_stacked = true;
    }
    out.graph.output(body.outputs()[i].name, value);
    out.stacked.push_back(is_stacked);
  }
  return out;
}

}  // namespace

std::vector<Batched> scanned(const BatchedNode& node) {
  const auto carries = static_cast<size_t>(node.node.attributes.integer("carries")),
             slices = static_cast<size_t>(node.node.attributes.integer("slices"));
  std::vector<bool> stacked;
  for (const Batched& operand : node.operands) stacked.push_back(operand.stacked);
  // A carry that begins the same for all models may not stay so.
  BatchedBody body;
  for (bool changed = true; changed;) {
    body = batched_body(*node.node.body, stacked, carries, node.models);
    changed = false;
    for (size_t i = 0; i < carries; ++i) {
      if (stacked[i] || !body.stacked[i]) continue;
      stacked[i] = changed = true;
    }
  }
  std::vector<Value> operands;
  for (size_t i = 0; i < stacked.size(); ++i) {
    const bool sliced = i >= carries && i < carries + slices;
    const Value value = stacked[i] ? node.stacked(i) : node.operands[i].value;
    operands.push_back(sliced && stacked[i] ? moveaxis(value, {0}, {1}) : value);  // steps first
  }
  std::vector<Batched> out;
  for (Value value : node.to.add(Op::scan, operands, node.node.attributes, std::make_shared<const Graph>(std::move(body.graph)))) {
    const size_t i = out.size();
    out.push_back({i >= carries && body.stacked[i] ? moveaxis(value, {1}, {0}) : value, body.stacked[i]});
  }
  return out;
}

}  // namespace batching_rules

}  // namespace tutti
