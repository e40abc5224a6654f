// keras.ops that move elements without changing them: shapes, axes, joining, splitting, repeating, padding.
#include <algorithm>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

int64_t axis_option(Call& c, std::string_view key, int64_t otherwise, int64_t rank) {
  return wrapped_axis(c.config, c.config.integer(key, otherwise), rank);
}

// -1 stands for what is left.
Outputs reshape_(Call& c) {
  Value x = array(c);
  Ints to = c.config.ints("newshape");
  if (!to.empty() && to[0] > 0) to[0] = rows_at_this_batch(c, "x", to[0]);
  auto open = std::find(to.begin(), to.end(), -1);
  if (open != to.end()) {
    *open = 1;
    int64_t known = Shape(to).elements();
    if (known == 0 || x.shape().elements() % known != 0)
      c.config.invalid("cannot reshape {} to {}", to_string(x.type()), to_string(c.config.ints("newshape")));
    *open = x.shape().elements() / known;
  }
  return reshape(x, to);
}

Outputs ravel(Call& c) { return flatten(array(c)); }

Outputs transpose_(Call& c) {
  Value x = array(c);
  if (c.config.has("axes")) return transpose(x, c.config.ints("axes"));
  Ints axes = all_axes(x);
  std::reverse(axes.begin(), axes.end());
  return transpose(x, axes);
}

Outputs expand(Call& c) { return expand_dims(array(c), c.config.ints("axis")); }
Outputs squeezed(Call& c) { return c.config.has("axis") ? squeeze(array(c), c.config.ints("axis")) : squeeze(array(c)); }

Outputs concatenate_(Call& c) {
  auto parts = promoted(operand_list(c, 0, "xs"));
  return concatenate(parts, axis_option(c, "axis", 0, parts[0].rank()));
}
Outputs append(Call& c) {
  auto parts = promoted({operand(c, 0, "x1"), operand(c, 1, "x2")});
  if (!c.config.has("axis")) return concatenate({flatten(parts[0]), flatten(parts[1])}, 0);
  return concatenate(parts, axis_option(c, "axis", 0, parts[0].rank()));
}
Outputs stack_(Call& c) {
  auto parts = promoted(operand_list(c, 0, "x"));
  return stack(parts, axis_option(c, "axis", 0, parts[0].rank() + 1));
}

// NumPy's atleast_1d, _2d, _3d.
Value at_least(Value x, int64_t rank) {
  if (x.rank() >= rank) return x;
  if (x.rank() == 0) return reshape(x, Ints(static_cast<size_t>(rank), 1));
  if (x.rank() == 1) return rank == 2 ? expand_dims(x, {0}) : expand_dims(x, {0, 2});
  return expand_dims(x, {2});
}
template <int64_t rank>
Outputs joined(Call& c) {
  std::vector<Value> parts;
  for (Value part : promoted(operand_list(c, 0, "xs"))) parts.push_back(at_least(part, rank));
  // hstack joins vectors along their only axis.
  int64_t axis = rank == 1 ? (parts[0].rank() == 1 ? 0 : 1) : rank == 2 ? 0 : 2;
  return concatenate(parts, axis);
}

// A number of equal sections, or the places where sections begin.
Outputs split_along(Call& c, int64_t axis, bool may_differ) {
  Value x = array(c);
  axis = wrapped_axis(c.config, axis, x.rank());
  const Json& given = c.config.at("indices_or_sections");
  int64_t extent = x.extent(axis);
  Ints sizes;
  if (given.is_int()) {
    int64_t sections = given.as_int();
    if (sections < 1 || sections > most_parts) c.config.invalid("sections are between 1 and {}; got {}", most_parts, sections);
    if (!may_differ && extent % sections != 0)
      c.config.invalid("cannot split {} of {} into {} equal sections", extent, to_string(x.type()), sections);
    for (int64_t i = 0; i < sections; ++i) sizes.push_back(extent / sections + (i < extent % sections ? 1 : 0));
  } else {
    Ints bounds = c.config.ints("indices_or_sections");
    if (static_cast<int64_t>(bounds.size()) >= most_parts) c.config.invalid("more than {} sections", most_parts);
    std::vector<Signal> parts;
    for (size_t i = 0; i <= bounds.size(); ++i) {
      std::optional<int64_t> start, stop;
      if (i > 0) start = bounds[i - 1];
      if (i < bounds.size()) stop = bounds[i];
      parts.push_back({slice_axis(x, axis, start, stop), {}});
    }
    return parts;
  }
  std::vector<Signal> parts;
  for (Value part : split(x, axis, sizes)) parts.push_back({part, {}});
  return parts;
}
Outputs split_(Call& c) { return split_along(c, c.config.integer("axis", 0), false); }
Outputs array_split(Call& c) { return split_along(c, c.config.integer("axis", 0), true); }
Outputs vsplit(Call& c) { return split_along(c, 0, false); }
Outputs hsplit(Call& c) { return split_along(c, array(c).rank() == 1 ? 0 : 1, false); }
Outputs dsplit(Call& c) { return split_along(c, 2, false); }

Outputs unstack(Call& c) {
  Value x = array(c);
  int64_t axis = axis_option(c, "axis", 0, x.rank());
  if (x.extent(axis) > most_parts) c.config.unsupported("more than {} tensors", most_parts);
  std::vector<Signal> parts;
  for (int64_t i = 0; i < x.extent(axis); ++i) parts.push_back({index_axis(x, axis, i), {}});
  return parts;
}

void require_size(const Config& config, double elements) {
  if (elements > static_cast<double>(int64_t{1} << 40)) config.invalid("the result has {} elements, more than fit", elements);
}

Outputs tile_(Call& c) {
  Value x = array(c);
  Ints repeats = c.config.ints("repeats");
  for (int64_t times : repeats)
    if (times < 0) c.config.invalid("'repeats' are not negative; got {}", to_string(repeats));
  return tile(x, repeats);
}

// Each element so many times: one number for all, or one for each.
Outputs repeat_(Call& c) {
  Value x = array(c);
  if (!c.config.has("axis")) x = flatten(x);
  int64_t axis = c.config.has("axis") ? axis_option(c, "axis", 0, x.rank()) : 0;
  Ints times = c.config.ints("repeats");
  for (int64_t t : times)
    if (t < 0) c.config.invalid("'repeats' are not negative; got {}", to_string(times));
  if (times.size() == 1) return repeat(x, times[0], axis);
  if (static_cast<int64_t>(times.size()) != x.extent(axis))
    c.config.invalid("'repeats' has {} entries for axis {} of {}", times.size(), axis, to_string(x.type()));
  Ints indices;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] > most_elements - static_cast<int64_t>(indices.size()))
      c.config.invalid("'repeats' adds up to more than {}", most_elements);
    indices.insert(indices.end(), static_cast<size_t>(times[i]), static_cast<int64_t>(i));
  }
  return take(x, indices, axis);
}

Outputs roll_(Call& c) {
  Value x = array(c);
  Ints shifts = c.config.ints("shift");
  if (!c.config.has("axis")) {
    if (shifts.size() != 1) c.config.invalid("without an axis 'shift' is one number");
    return reshape(roll(flatten(x), shifts[0], 0), x.shape());
  }
  Ints axes = c.config.ints("axis");
  if (shifts.size() != axes.size() && shifts.size() != 1 && axes.size() != 1)
    c.config.invalid("'shift' and 'axis' have {} and {} entries", shifts.size(), axes.size());
  for (size_t i = 0; i < std::max(shifts.size(), axes.size()); ++i)
    x = roll(x, shifts.size() == 1 ? shifts[0] : shifts[i], axes.size() == 1 ? axes[0] : axes[i]);
  return x;
}

Outputs flip_(Call& c) {
  Value x = array(c);
  return flip(x, reduction_axes(c.config, x.rank()));
}
Outputs fliplr(Call& c) { return flip(array(c), {1}); }
Outputs flipud(Call& c) { return flip(array(c), {0}); }

Outputs rot90(Call& c) {
  Value x = array(c, "array");
  Ints axes = c.config.ints("axes", 2, {0, 1});
  int64_t a = wrapped_axis(c.config, axes[0], x.rank()), b = wrapped_axis(c.config, axes[1], x.rank());
  if (a == b) c.config.invalid("'axes' are two different ones; got {}", to_string(axes));
  switch (((c.config.integer("k", 1) % 4) + 4) % 4) {
    case 0: return x;
    case 1: return swapaxes(flip(x, {b}), a, b);
    case 2: return flip(x, {a, b});
    default: return flip(swapaxes(x, a, b), {b});
  }
}

Outputs swapaxes_(Call& c) { return swapaxes(array(c), c.config.integer("axis1"), c.config.integer("axis2")); }
Outputs moveaxis_(Call& c) { return moveaxis(array(c), c.config.ints("source"), c.config.ints("destination")); }

Outputs broadcast(Call& c) {
  Value x = array(c);
  Ints to = c.config.ints("shape");
  if (static_cast<int64_t>(to.size()) == x.rank() && !to.empty()) to[0] = rows_at_this_batch(c, "x", to[0]);
  double elements = 1;
  for (int64_t extent : to) elements *= static_cast<double>(extent);
  require_size(c.config, elements);
  return broadcast_to(x, to);
}

// "pad_width": one number, [low, high] for every axis, or one such list an axis.
Outputs pad_(Call& c) {
  Value x = array(c);
  const Json& given = c.config.at("pad_width");
  auto rank = static_cast<size_t>(x.rank());
  Ints low, high;
  auto read = [&](const Json& entry) {
    Config one(entry, c.config.where());
    bool fits = entry.is_list() && (entry.size() == 1 || entry.size() == 2) && entry[0].is_int() && entry[entry.size() - 1].is_int();
    if (!fits) c.config.invalid("'pad_width' holds pairs of integers; got {}", given.dump());
    low.push_back(entry[0].as_int());
    high.push_back(entry[entry.size() - 1].as_int());
  };
  if (given.is_int()) {
    low = high = {given.as_int()};
  } else if (given.is_list() && given.size() > 0 && given[0].is_int()) {
    read(given);
  } else if (given.is_list()) {
    for (const Json& entry : given.items()) read(entry);
  }
  if (low.size() == 1) {
    low.resize(rank, low[0]);
    high.resize(rank, high[0]);
  }
  if (low.size() != rank) c.config.invalid("'pad_width' has {} entries for rank {}", low.size(), rank);
  for (size_t i = 0; i < rank; ++i)
    if (low[i] < 0 || high[i] < 0) c.config.invalid("'pad_width' is not negative; got {}", given.dump());
  std::string mode = c.config.text("mode", "constant");
  if (mode == "constant") {
    const Argument* fill = c.arguments.find(1, "constant_values");
    if (fill == nullptr) return pad(x, 0.0, low, high);
    Json number = plain(c, *fill, "constant_values");
    if (!number.is_number() && !number.is_bool()) c.config.unsupported("'constant_values' is one number; got {}", number.dump());
    return pad(x, number.is_bool() ? (number.as_bool() ? 1.0 : 0.0) : number.as_number(), low, high);
  }
  if (mode == "edge") return pad(x, PadMode::edge, low, high);
  if (mode == "reflect") return pad(x, PadMode::reflect, low, high);
  if (mode == "symmetric") return pad(x, PadMode::symmetric, low, high);
  if (mode != "wrap") c.config.unsupported("mode '{}' is not done; hint: constant, edge, reflect, symmetric and wrap are", mode);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    auto i = static_cast<size_t>(axis);
    int64_t extent = x.extent(axis);
    if (low[i] == 0 && high[i] == 0) continue;
    if (extent < 1 || std::max(low[i], high[i]) > most_elements || extent > most_elements)
      c.config.invalid("cannot wrap {}", to_string(x.type()));
    Ints indices;
    for (int64_t p = -low[i]; p < extent + high[i]; ++p) indices.push_back(((p % extent) + extent) % extent);
    x = take(x, indices, axis);
  }
  return x;
}

// The elements where row + offset = column, of the two axes, as a new last axis.
Value diagonal_of(Call& c, Value x, int64_t offset, int64_t axis1, int64_t axis2) {
  axis1 = wrapped_axis(c.config, axis1, x.rank());
  axis2 = wrapped_axis(c.config, axis2, x.rank());
  if (axis1 == axis2) c.config.invalid("a diagonal lies in two different axes");
  x = moveaxis(x, {axis1, axis2}, {-2, -1});  // [..., rows, columns]
  int64_t rows = x.extent(-2), columns = x.extent(-1);
  offset = std::clamp(offset, -rows, columns);
  int64_t first_row = std::max<int64_t>(0, -offset), first_column = std::max<int64_t>(0, offset);
  int64_t length = std::max<int64_t>(0, std::min(rows - first_row, columns - first_column));
  x = slice_axis(slice_axis(x, -2, first_row, first_row + length), -1, first_column, first_column + length);
  Value on = compare(iota(c.graph, {DType::i32, {length, length}}, 0), iota(c.graph, {DType::i32, {length, length}}, 1), Direction::EQ);
  return x.dtype() == DType::boolean ? any(logical_and(x, on), {-2}) : sum(select(on, x, full_like(x, 0)), {-2});
}
Outputs diagonal(Call& c) {
  return diagonal_of(c, array(c), c.config.integer("offset", 0), c.config.integer("axis1", 0), c.config.integer("axis2", 1));
}
Outputs trace(Call& c) {
  Value x = array(c);
  Value on = diagonal_of(c, x, c.config.integer("offset", 0), c.config.integer("axis1", 0), c.config.integer("axis2", 1));
  return sum(convert(on, sum_type(x.dtype())), {-1});
}

// A vector on the k-th diagonal of a square matrix of zeros.
Value on_diagonal(Call& c, Value x, int64_t k) {
  constexpr int64_t longest = 1 << 20;
  if (k < -longest || k > longest || x.extent(0) > longest) c.config.invalid("a diagonal {} of {} is too large", k, to_string(x.type()));
  int64_t size = x.extent(0) + (k < 0 ? -k : k);
  Value rows = iota(c.graph, {DType::i32, {size, size}}, 0), columns = iota(c.graph, {DType::i32, {size, size}}, 1);
  Value on = compare(rows + static_cast<double>(k), columns, Direction::EQ);
  Value placed = pad(x, 0.0, {std::max<int64_t>(k, 0)}, {std::max<int64_t>(-k, 0)});  // by column
  return select(on, broadcast_in_dim(placed, {size, size}, {1}), full(c.graph, {x.dtype(), {size, size}}, 0));
}
Outputs diag(Call& c) {
  Value x = array(c);
  int64_t k = c.config.integer("k", 0);
  if (x.rank() == 1) return on_diagonal(c, x, k);
  if (x.rank() != 2) c.config.invalid("takes a vector or a matrix; got {}", to_string(x.type()));
  return diagonal_of(c, x, k, 0, 1);
}
Outputs diagflat(Call& c) { return on_diagonal(c, flatten(array(c)), c.config.integer("k", 0)); }

// The lower or upper triangle of the last two axes; zeros elsewhere.
Outputs triangle(Call& c, Direction kept) {
  Value x = array(c);
  if (x.rank() < 2) c.config.invalid("takes at least a matrix; got {}", to_string(x.type()));
  Type plane{DType::i64, {x.extent(-2), x.extent(-1)}};
  int64_t k = std::clamp(c.config.integer("k", 0), -x.extent(-2) - 1, x.extent(-1) + 1);
  Value distance = iota(c.graph, plane, 1) - iota(c.graph, plane, 0);
  return select(compare(distance, static_cast<double>(k), kept), x, full_like(x, 0));
}
Outputs tril(Call& c) { return triangle(c, Direction::LE); }
Outputs triu(Call& c) { return triangle(c, Direction::GE); }

Outputs meshgrid(Call& c) {
  std::vector<Value> axes;
  for (const Argument& argument : c.arguments.in_order()) axes.push_back(flatten(to_operand(c, argument, "x").value()));
  std::string indexing = c.config.text("indexing", "xy");
  if (indexing != "xy" && indexing != "ij") c.config.invalid("'indexing' is xy or ij; got '{}'", indexing);
  if (axes.empty()) c.config.invalid("is called without tensors");
  Ints extents;
  for (Value axis : axes) extents.push_back(axis.extent(0));
  bool swapped = indexing == "xy" && axes.size() > 1;
  if (swapped) std::swap(extents[0], extents[1]);
  std::vector<Signal> out;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t at = swapped && i < 2 ? 1 - static_cast<int64_t>(i) : static_cast<int64_t>(i);
    out.push_back({broadcast_in_dim(axes[i], extents, {at}), {}});
  }
  return out;
}

constexpr std::string_view sections = "indices_or_sections";

}  // namespace

Rows shape_operations() {
  static const LayerRow rows[] = {
      operation("Append", append, "axis"),
      operation("ArraySplit", array_split, "indices_or_sections axis"),
      operation("BroadcastTo", broadcast, "shape"),
      operation("Concatenate", concatenate_, "axis"),
      operation("Diag", diag, "k"),
      operation("Diagflat", diagflat, "k"),
      operation("Diagonal", diagonal, "offset axis1 axis2"),
      operation("Dsplit", dsplit, sections),
      operation("Dstack", joined<3>),
      operation("ExpandDims", expand, "axis"),
      operation("Flip", flip_, "axis"),
      operation("Fliplr", fliplr),
      operation("Flipud", flipud),
      operation("Hsplit", hsplit, sections),
      operation("Hstack", joined<1>),
      operation("Meshgrid", meshgrid, "indexing"),
      operation("Moveaxis", moveaxis_, "source destination"),
      operation("Pad", pad_, "pad_width mode", "modes constant, edge, reflect, symmetric and wrap; others are refused"),
      operation("Ravel", ravel),
      operation("Repeat", repeat_, "repeats axis"),
      operation("Reshape", reshape_, "newshape"),
      operation("Roll", roll_, "shift axis"),
      operation("Rot90", rot90, "k axes"),
      operation("Split", split_, "indices_or_sections axis"),
      operation("Squeeze", squeezed, "axis"),
      operation("Stack", stack_, "axis"),
      operation("Swapaxes", swapaxes_, "axis1 axis2"),
      operation("Tile", tile_, "repeats"),
      operation("Trace", trace, "offset axis1 axis2"),
      operation("Transpose", transpose_, "axes"),
      operation("Tril", tril, "k"),
      operation("Triu", triu, "k"),
      operation("Unstack", unstack, "num axis"),
      operation("Vsplit", vsplit, sections),
      operation("Vstack", joined<2>),
  };
  return rows;
}

}  // namespace tutti::keras
