#include "tutti/keras/fit/regularizers.h"

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"

namespace tutti::keras {

namespace {

constexpr double small = 1e-7;  // keras.config.epsilon()

struct RegularizerRow {
  std::string_view names;
  Value (*function)(const Config&, Value);
  std::string_view options;
};

Value scaled_sum(Value x, double factor) { return sum(x, all_axes(x)) * factor; }

Value l1_and_l2(Value x, double l1, double l2) {
  Value total = scalar(x.graph(), x.dtype(), 0);
  if (l1 != 0) total = total + scaled_sum(abs(x), l1);
  if (l2 != 0) total = total + scaled_sum(square(x), l2);
  return total;
}

Value orthogonal(const Config& c, Value x) {
  if (x.rank() != 2) fail<InvalidArgument>("fit", "{}: takes weights of rank 2; got {}", c.where(), to_string(x.shape()));
  const std::string mode = c.text("mode", "rows");
  if (mode != "rows" && mode != "columns") c.invalid("'mode' is rows or columns; got '{}'", escape(mode));
  const Value by_rows = mode == "rows" ? x : transpose(x, {1, 0});
  const Value unit = by_rows * rsqrt(maximum(sum(square(by_rows), {1}, true), small * small));
  const int64_t count = unit.extent(0);
  const Value products = matmul(unit, transpose(unit, {1, 0}));
  const Type type{DType::i32, products.shape()};
  const Value apart = compare(iota(x.graph(), type, 0), iota(x.graph(), type, 1), Direction::NE);
  const Value others = abs(products * convert(apart, x.dtype()));
  return scaled_sum(others, 0.5 * c.number("factor", 0.01)) / (static_cast<double>(count) * static_cast<double>(count - 1) / 2);
}

const RegularizerRow regularizer_rows[] = {
    {"l1", [](const Config& c, Value x) { return l1_and_l2(x, c.number("l1", 0.01), 0); }, "l1(,)"},
    {"l2", [](const Config& c, Value x) { return l1_and_l2(x, 0, c.number("l2", 0.01)); }, "l2(,)"},
    {"l1_l2", [](const Config& c, Value x) { return l1_and_l2(x, c.number("l1", 0), c.number("l2", 0)); }, "l1(,) l2(,)"},
    {"orthogonal_regularizer", orthogonal, "factor(,) mode"},
};

Ints norm_axes(const Config& c, Value x) { return wrap_axes(c.ints("axis", -1, {0}), x.rank()); }
Value norms(const Config& c, Value x) { return sqrt(sum(square(x), norm_axes(c, x), true)); }

const RegularizerRow constraint_rows[] = {
    {"max_norm",
     [](const Config& c, Value x) {
       const Value norm = norms(c, x);
       return x * (clamp(norm, 0, c.number("max_value", 2)) / (norm + small));
     },
     "max_value(,) axis"},
    {"non_neg", [](const Config&, Value x) { return maximum(x, 0.0); }, ""},
    {"unit_norm", [](const Config& c, Value x) { return x / (norms(c, x) + small); }, "axis"},
    {"min_max_norm",
     [](const Config& c, Value x) {
       const double rate = c.number("rate", 1);
       const Value norm = norms(c, x);
       const Value desired = clamp(norm, c.number("min_value", 0), c.number("max_value", 1)) * rate + norm * (1 - rate);
       return x * (desired / (norm + small));
     },
     "min_value(,) max_value(,) rate(,) axis"},
};

Value apply_row(std::span<const RegularizerRow> rows, const Json& json, const char* what, Value x) {
  const Named named = read_named(json, what);
  const RegularizerRow& row = find_row(rows, named);
  check_arguments(named, row.options);
  const Config config = named.config();
  return row.function(config, x);
}

}  // namespace

Value regularization(const Json& regularizer, Value x) {
  return convert(apply_row(regularizer_rows, regularizer, "regularizer", x), DType::f32);
}

Value constrained(const Json& constraint, Value x) { return apply_row(constraint_rows, constraint, "constraint", x); }

std::string weight_option(std::string_view weight, std::string_view what) {
  constexpr std::string_view suffix = "_kernel";
  if (weight.ends_with(suffix)) weight.remove_suffix(suffix.size());
  return std::string(weight) + "_" + std::string(what);
}

}  // namespace tutti::keras
