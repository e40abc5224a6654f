// keras.ops that read and write by index: x[...], take, slices, scatters, segments.
#include <limits>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

std::optional<int64_t> bound(const Config& config, const Json& slice, std::string_view key) {
  const Json* inner = slice.find("config");
  const Json* value = inner != nullptr && inner->is_object() ? inner->find(key) : nullptr;
  if (value == nullptr || value->is_null()) return {};
  if (!value->is_int()) config.unsupported("a slice's {} is a known integer; got {}", key, value->dump());
  return value->as_int();
}

// The parts of x[key]: the one that was given, or those of a tuple.
std::vector<Argument> subkeys(Call& c) {
  const Argument* key = c.arguments.given(1, "key");
  if (key == nullptr) c.config.invalid("is called without 'key'");
  return key->kind == Argument::Kind::list ? key->items : std::vector<Argument>{*key};
}

bool is_plain(const Argument& key) { return key.kind == Argument::Kind::constant; }
bool is_new_axis(const Argument& key) { return is_plain(key) && key.constant.is_null(); }
bool is_ellipsis(const Argument& key) { return is_plain(key) && is_object_of(key.constant, "__ellipsis__"); }
bool is_slice(const Argument& key) { return is_plain(key) && is_object_of(key.constant, "__slice__"); }
bool is_index(const Argument& key) { return is_plain(key) && key.constant.is_int(); }

Outputs get_item(Call& c) {
  Value x = array(c);
  auto keys = subkeys(c);
  int64_t consumed = 0, arrays = 0, ellipses = 0;
  for (const Argument& key : keys) {
    ellipses += is_ellipsis(key);
    consumed += !is_ellipsis(key) && !is_new_axis(key);
    arrays += !is_ellipsis(key) && !is_new_axis(key) && !is_slice(key) && !is_index(key);
  }
  if (ellipses > 1) c.config.invalid("a key has one ellipsis");
  if (consumed > x.rank()) c.config.invalid("{} indices for {}", consumed, to_string(x.type()));
  if (arrays > 1) c.config.unsupported("indexing with several arrays is not done; hint: take and take_along_axis are");
  int64_t axis = 0;
  for (const Argument& key : keys) {
    if (is_ellipsis(key)) {
      axis += x.rank() - axis - consumed;
      continue;
    }
    if (is_new_axis(key)) {
      x = expand_dims(x, {axis++});
      continue;
    }
    --consumed;
    if (is_slice(key)) {
      auto step = bound(c.config, key.constant, "step");
      if (step == 0) c.config.invalid("a slice's step is not 0");
      x = slice_axis(x, axis++, bound(c.config, key.constant, "start"), bound(c.config, key.constant, "stop"), step.value_or(1));
    } else if (is_index(key)) {
      x = index_axis(x, axis, key.constant.as_int());
    } else {
      Value indices = to_operand(c, key, "key").value();
      if (!is_integer(indices.dtype()))
        c.config.unsupported("indexing with {} is not done; hint: where and take are", to_string(indices.type()));
      x = take(x, indices, axis);
      axis += indices.rank();
    }
  }
  return x;
}

Value index_operand(Call& c, size_t position, std::string_view name) {
  Value indices = operand(c, position, name).value();
  if (!is_integer(indices.dtype())) c.config.invalid("'{}' holds integers; got {}", name, to_string(indices.type()));
  return indices;
}

Outputs take_(Call& c) {
  Value x = array(c), indices = index_operand(c, 1, "indices");
  if (!c.config.has("axis")) return take(flatten(x), indices, 0);
  return take(x, indices, wrapped_axis(c.config, c.config.integer("axis"), x.rank()));
}

Outputs take_along(Call& c) {
  Value x = array(c), indices = index_operand(c, 1, "indices");
  if (!c.config.has("axis")) return take_along_axis(flatten(x), flatten(indices), 0);
  return take_along_axis(x, indices, wrapped_axis(c.config, c.config.integer("axis"), x.rank()));
}

// "start_indices": a list of numbers and scalar tensors, or one vector.
std::vector<Value> starts(Call& c, int64_t rank) {
  const Argument* given = c.arguments.find(1, "start_indices");
  if (given == nullptr) c.config.invalid("is called without 'start_indices'");
  std::vector<Value> out;
  for (const Operand& start : operand_list(c, 1, "start_indices")) out.push_back(reshape(convert(start.value(), DType::i32), {}));
  if (static_cast<int64_t>(out.size()) != rank) c.config.invalid("'start_indices' has {} entries for rank {}", out.size(), rank);
  return out;
}

Outputs slice_(Call& c) {
  Value x = array(c, "inputs");
  Ints sizes = c.config.ints("shape", x.rank());
  const Argument* inputs = c.arguments.find(0, "inputs");
  // All rows of the batch that the file fixes are all rows of the one that runs.
  if (inputs != nullptr && inputs->written_rows > 0 && !sizes.empty() && sizes[0] == inputs->written_rows) sizes[0] = x.extent(0);
  const Argument* given = c.arguments.find(1, "start_indices");
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != -1) continue;
    // The rest of the axis, from a start that is known.
    bool known = given != nullptr && given->kind == Argument::Kind::list && i < given->items.size() && is_index(given->items[i]);
    if (!known) c.config.unsupported("a slice's extent -1 goes with a known start");
    int64_t start = given->items[i].constant.as_int();
    if (start < 0 || start > x.extent(static_cast<int64_t>(i))) c.config.invalid("a slice starts at {} of {}", start, to_string(x.type()));
    sizes[i] = x.extent(static_cast<int64_t>(i)) - start;
  }
  return dynamic_slice(x, starts(c, x.rank()), sizes);
}

Outputs slice_update(Call& c) {
  Value x = array(c, "inputs");
  return dynamic_update_slice(x, operand(c, 2, "updates").as(x.dtype()), starts(c, x.rank()));
}

// indices: [..., k], the first k axes of x; updates: [..., the other axes of x]. Negative indices count from the end.
Value scatter_into(Call& c, Value x, Value indices, Value updates, std::string kind) {
  if (indices.rank() < 1) c.config.invalid("'indices' has an axis of indices; got {}", to_string(indices.type()));
  int64_t k = indices.extent(-1);
  if (k > x.rank()) c.config.invalid("'indices' {} for {}", to_string(indices.type()), to_string(x.type()));
  std::vector<int64_t> extents(x.shape().begin(), x.shape().begin() + k);
  indices = convert(indices, DType::i64);
  indices = select(compare(indices, 0, Direction::LT), indices + constant<int64_t>(c.graph, {k}, extents), indices);
  ScatterDims dims;
  Ints expected(indices.shape().begin(), indices.shape().end() - 1);
  for (int64_t i = 0; i < k; ++i) dims.inserted_window_dims.push_back(i);
  for (int64_t i = k; i < x.rank(); ++i) {
    dims.update_window_dims.push_back(indices.rank() - 1 + i - k);
    expected.push_back(x.extent(i));
  }
  dims.scatter_dims_to_operand_dims = dims.inserted_window_dims;
  dims.index_vector_dim = indices.rank() - 1;
  return scatter(x, indices, broadcast_to(updates, expected), dims, std::move(kind));
}

Outputs scatter_(Call& c) {
  Value indices = index_operand(c, 0, "indices"), values = operand(c, 1, "values").value();
  Shape shape(c.config.ints("shape"));
  if (shape.elements() > (int64_t{1} << 32)) c.config.invalid("'shape' {} is too large", to_string(shape));
  return scatter_into(c, full(c.graph, {values.dtype(), shape}, 0), indices, values, "add");
}

Outputs scatter_update(Call& c) {
  Value x = array(c, "inputs"), indices = index_operand(c, 1, "indices");
  std::string reduction = c.config.text("reduction", "replace");
  if (reduction == "mul") reduction = "multiply";
  for (std::string_view known : {"replace", "add", "max", "min", "multiply"})
    if (reduction == known) return scatter_into(c, x, indices, operand(c, 2, "updates").as(x.dtype()), reduction);
  c.config.invalid("'reduction' is add, max, min or mul; got '{}'", reduction);
}

double least(DType dtype) {
  return is_float(dtype) ? -std::numeric_limits<double>::infinity() : is_signed(dtype) ? std::numeric_limits<double>::lowest() : 0;
}
double most(DType dtype) { return is_float(dtype) ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::max(); }

// Rows of `data` meet in the row of the result that their segment names; rows of no segment are left out.
Outputs segments(Call& c, const std::string& kind) {
  Value data = operand(c, 0, "data").value(), ids = index_operand(c, 1, "segment_ids");
  if (!c.config.has("num_segments")) c.config.unsupported("without 'num_segments' the shape of the result depends on the data");
  if (data.rank() < 1 || ids.rank() != 1 || ids.extent(0) != data.extent(0))
    c.config.invalid("'segment_ids' has one entry a row of 'data'; got {} and {}", to_string(ids.type()), to_string(data.type()));
  Ints extents = data.shape().extents();
  extents[0] = c.config.integer("num_segments");
  if (extents[0] < 0 || extents[0] > (int64_t{1} << 32)) c.config.invalid("'num_segments' is {}", extents[0]);
  DType dtype = data.dtype();
  double empty = kind == "add" ? 0 : kind == "multiply" ? 1 : kind == "max" ? least(dtype) : most(dtype);
  ScatterDims dims;
  for (int64_t i = 1; i < data.rank(); ++i) dims.update_window_dims.push_back(i);
  dims.inserted_window_dims = dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  return scatter(full(c.graph, {dtype, extents}, empty), ids, data, dims, kind);
}
Outputs segment_sum(Call& c) { return segments(c, "add"); }
Outputs segment_max(Call& c) { return segments(c, "max"); }
Outputs segment_min(Call& c) { return segments(c, "min"); }
Outputs segment_prod(Call& c) { return segments(c, "multiply"); }

// A place in the flattened array as one index an axis.
Outputs unravel_index(Call& c) {
  Value place = index_operand(c, 0, "indices");
  Shape shape(c.config.ints("shape"));
  if (shape.elements() < 1 || shape.rank() > 32) c.config.invalid("'shape' {} has no elements", to_string(shape));
  double total = static_cast<double>(shape.elements());
  if (is_signed(place.dtype())) place = clamp(select(compare(place, 0, Direction::LT), place + total, place), 0, total - 1);
  std::vector<Signal> out(static_cast<size_t>(shape.rank()));
  for (int64_t i = shape.rank(); i-- > 0;) {
    Value extent = full_like(place, static_cast<double>(shape[i]));
    out[static_cast<size_t>(i)].value = remainder(place, extent);
    place = place / extent;
  }
  return out;
}

constexpr std::string_view needs_count = "without 'num_segments' the shape of the result depends on the data: refused";

}  // namespace

Rows index_operations() {
  static const LayerRow rows[] = {
      operation("GetItem", get_item, "", "several index arrays and boolean masks are refused"),
      operation("Scatter", scatter_, "shape"),
      operation("ScatterUpdate", scatter_update, "reduction"),
      operation("SegmentMax", segment_max, "num_segments sorted", needs_count),
      operation("SegmentMin", segment_min, "num_segments sorted", needs_count),
      operation("SegmentProd", segment_prod, "num_segments sorted", needs_count),
      refused("SegmentReduction", "it is the abstract base of SegmentSum and its kin"),
      operation("SegmentSum", segment_sum, "num_segments sorted", needs_count),
      operation("Slice", slice_, "shape", "an extent of -1 with a start that depends on the data is refused"),
      operation("SliceUpdate", slice_update),
      operation("Take", take_, "axis"),
      operation("TakeAlongAxis", take_along, "axis"),
      operation("UnravelIndex", unravel_index, "shape"),
  };
  return rows;
}

}  // namespace tutti::keras
