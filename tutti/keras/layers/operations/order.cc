// keras.ops that put elements in order: sorting, quantiles, the largest k, places in a sorted sequence.
#include <cmath>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

// Along "axis"; null means the flattened tensor.
struct Along {
  Value x;
  int64_t axis;
};
Along along(Call& c) {
  Value x = array(c);
  if (c.config.json().is_object() && c.config.json().has("axis") && !c.config.has("axis")) return {flatten(x), 0};
  if (x.rank() == 0) return {flatten(x), 0};
  return {x, wrapped_axis(c.config, c.config.integer("axis", -1), x.rank())};
}

Value sorted(Value x, int64_t axis) { return sort({x}, axis)[0]; }

Outputs sort_(Call& c) {
  auto [x, axis] = along(c);
  return sorted(x, axis);
}
Outputs argsort_(Call& c) {
  auto [x, axis] = along(c);
  return argsort(x, axis);
}

enum class Between { linear, lower, higher, midpoint, nearest };

Between read_method(const Config& config) {
  std::string method = config.text("method", "linear");
  for (auto [name, value] : {std::pair("linear", Between::linear), std::pair("lower", Between::lower), std::pair("higher", Between::higher),
                             std::pair("midpoint", Between::midpoint), std::pair("nearest", Between::nearest)})
    if (method == name) return value;
  config.invalid("'method' is linear, lower, higher, midpoint or nearest; got '{}'", method);
}

// x: [..., n] sorted, place: [...] between 0 and n - 1. The element there, or what `between` makes of its two neighbours.
Value element_at(Value x, Value place, Between between) {
  Value below = floor(place), above = unary(Op::ceil, place), share = place - below;
  auto pick = [&](Value index) {
    return squeeze(take_along_axis(x, expand_dims(convert(maximum(index, 0.0), DType::i32), {-1}), -1), {-1});
  };
  Value low = pick(below), high = pick(above);
  switch (between) {
    case Between::lower: return low;
    case Between::higher: return high;
    case Between::midpoint: return (low + high) * 0.5;
    case Between::nearest: return select(compare(share, 0.5, Direction::LE), low, high);
    case Between::linear: break;
  }
  share = convert(share, x.dtype());
  return low * (1.0 - share) + high * share;
}

// The quantiles `q` (fractions) of the axes that are reduced; a NaN makes the result NaN unless `skip_nan`.
Value quantiles(Call& c, const std::vector<double>& q, bool listed, Between between, bool skip_nan) {
  Value given = array(c), x = convert(given, float_type(given.dtype()));
  Ints axes = reduction_axes(c.config, x.rank()), last, kept = x.shape().extents(), rest;
  for (size_t i = 0; i < axes.size(); ++i) last.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(axes.size()));
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  x = moveaxis(x, axes, last);
  rest.assign(x.shape().begin(), x.shape().end() - static_cast<std::ptrdiff_t>(axes.size()));
  Ints rows = rest;
  rows.push_back(axes.empty() ? 1 : flatten(x, -static_cast<int64_t>(axes.size())).extent(-1));
  x = reshape(x, rows);  // [rest..., n]
  if (x.extent(-1) == 0) c.config.invalid("a quantile of nothing");
  Value in_order = sorted(x, -1);
  Value last_place = skip_nan ? maximum(sum(convert(logical_not(is_nan(x)), DType::f32), {-1}) - 1, 0.0)
                              : full(c.graph, {DType::f32, Shape(rest)}, static_cast<double>(x.extent(-1) - 1));
  Value not_a_number = any(is_nan(x), {-1});
  std::vector<Value> parts;
  for (double fraction : q) {
    Value out = element_at(in_order, last_place * fraction, between);
    if (!skip_nan) out = select(not_a_number, full_like(out, std::nan("")), out);
    parts.push_back(c.config.flag("keepdims", false) ? reshape(out, kept) : out);
  }
  return listed ? stack(parts, 0) : parts[0];
}

// "q" as it is called: one number, or a list of them, each between 0 and `whole`.
Outputs quantile_of(Call& c, double whole, Between between, bool skip_nan) {
  const Argument* argument = c.arguments.find(1, "q");
  if (argument == nullptr) c.config.invalid("is called without 'q'");
  Json json = plain(c, *argument, "q");
  Tensor given = read_array(c.config, json, "q").converted(DType::f64);
  if (given.shape().rank() > 1 || given.elements() < 1 || given.elements() > most_parts)
    c.config.invalid("'q' is a number or a list of up to {}; got {}", most_parts, to_string(given.type()));
  std::vector<double> q;
  for (double value : given.as<double>()) {
    if (!(value >= 0 && value <= whole)) c.config.invalid("'q' is between 0 and {}; got {}", whole, value);
    q.push_back(value / whole);
  }
  return quantiles(c, q, given.shape().rank() == 1, between, skip_nan);
}

// Keras's Quantile does not hand its method on: inside a model it is always linear.
Outputs quantile(Call& c) { return quantile_of(c, 1, Between::linear, false); }
Outputs percentile(Call& c) { return quantile_of(c, 100, read_method(c.config), false); }
Outputs nanquantile(Call& c) { return quantile_of(c, 1, read_method(c.config), true); }
Outputs nanpercentile(Call& c) { return quantile_of(c, 100, read_method(c.config), true); }
Outputs median(Call& c) { return quantiles(c, {0.5}, false, Between::midpoint, false); }
Outputs nanmedian(Call& c) { return quantiles(c, {0.5}, false, Between::midpoint, true); }

Outputs top_k_(Call& c) {
  Value x = array(c);
  TopK found = top_k(x, c.config.integer("k"));
  return std::vector<Signal>{{found.values, {}}, {found.indices, {}}};
}

// Whether fewer than k predictions are above that of the target.
Outputs in_top_k(Call& c) {
  Value targets = operand(c, 0, "targets").value(), predictions = operand(c, 1, "predictions").value();
  if (predictions.rank() < 1 || targets.rank() != predictions.rank() - 1)
    c.config.invalid("'predictions' has one axis more than 'targets'; got {} and {}", to_string(predictions.type()),
                     to_string(targets.type()));
  Value of_target = take_along_axis(predictions, expand_dims(targets, {-1}), -1);
  if (is_float(predictions.dtype()))
    of_target = select(is_nan(of_target), full_like(of_target, -std::numeric_limits<double>::infinity()), of_target);
  Value above = sum(convert(compare(predictions, of_target, Direction::GT), DType::i32), {-1});
  return compare(above, static_cast<double>(c.config.integer("k")), Direction::LT);
}

struct Search {
  Value sequence, values;
};
Search search(Call& c, const Operand& sequence, const Operand& values) {
  DType dtype = result_type(sequence, values);
  Search out{sequence.as(dtype), values.as(dtype)};
  if (out.sequence.rank() != 1 || out.sequence.extent(0) > most_elements)
    c.config.invalid("a sorted sequence has one axis; got {}", to_string(out.sequence.type()));
  return out;
}

Outputs search_sorted(Call& c) {
  auto [sequence, values] = search(c, operand(c, 0, "sorted_sequence"), operand(c, 1, "values"));
  std::string side = c.config.text("side", "left");
  if (side != "left" && side != "right") c.config.invalid("'side' is left or right; got '{}'", side);
  return searchsorted(sequence, values, side == "right");
}

// Bins may fall instead of rise.
Outputs digitize(Call& c) {
  auto [bins, values] = search(c, operand(c, 1, "bins"), operand(c, 0, "x"));
  int64_t n = bins.extent(0);
  Value rising = searchsorted(bins, values, true);
  if (n < 2) return rising;
  Value falling = static_cast<double>(n) - searchsorted(flip(bins, {0}), values, true);
  return select(compare(index_axis(bins, 0, -1), index_axis(bins, 0, 0), Direction::GE), rising, falling);
}

Outputs is_in(Call& c) {
  Operand a = operand(c, 0, "x1"), b = operand(c, 1, "x2");
  DType dtype = result_type(a, b);
  Value x = a.as(dtype), tests = flatten(b.as(dtype));
  Value found = any(compare(expand_dims(x, {-1}), tests, Direction::EQ), {-1});
  return c.config.flag("invert", false) ? logical_not(found) : found;
}

}  // namespace

Rows order_operations() {
  static const LayerRow rows[] = {
      refused("Argpartition", "the order within its parts is not defined; hint: argsort is"),
      operation("Argsort", argsort_, "axis"),
      refused("Bincount", "the shape of its result depends on the data; hint: sum a one_hot"),
      operation("Digitize", digitize),
      refused("Histogram", "Keras 3.15 cannot run it inside a model"),
      operation("InTopK", in_top_k, "k"),
      operation("IsIn", is_in, "assume_unique invert"),
      operation("Median", median, "axis keepdims"),
      operation("Nanmedian", nanmedian, "axis keepdims"),
      operation("Nanpercentile", nanpercentile, "axis method keepdims", "'q' that depends on the data is refused"),
      operation("Nanquantile", nanquantile, "axis method keepdims", "'q' that depends on the data is refused"),
      refused("Nonzero", "the shape of its result depends on the data; hint: where with three arguments"),
      operation("Percentile", percentile, "axis method keepdims", "'q' that depends on the data is refused"),
      operation("Quantile", quantile, "axis method keepdims",
                "always linear, as Keras computes it inside a model; 'q' that depends on the data is refused"),
      operation("SearchSorted", search_sorted, "side"),
      operation("Sort", sort_, "axis"),
      operation("TopK", top_k_, "k sorted"),
      refused("Unique", "the shape of its result depends on the data"),
  };
  return rows;
}

}  // namespace tutti::keras
