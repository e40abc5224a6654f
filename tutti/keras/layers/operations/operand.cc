#include "tutti/keras/layers/operations/operand.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/saturate.h"

namespace tutti::keras {

namespace {

constexpr size_t highest_rank = 32;

PromotedType type_of_number(const Json& number) { return number.is_int() ? python_int : python_float; }

// The extents of a nested list; every list on a level has the same length.
void read_extents(const Config& config, const Json& json, std::string_view name, Ints& extents, size_t level) {
  if (!json.is_list()) return;
  if (level >= highest_rank) config.invalid("'{}' is nested more than {} deep", name, highest_rank);
  extents.push_back(static_cast<int64_t>(json.size()));
  if (json.size() > 0) read_extents(config, json[0], name, extents, level + 1);
}

struct Leaves {
  const Config& config;
  std::string_view name;
  const Ints& extents;
  std::vector<const Json*> found = {};

  void collect(const Json& json, size_t level) {
    bool fits = level == extents.size() ? json.is_number() || json.is_bool()
                                        : json.is_list() && static_cast<int64_t>(json.size()) == extents[level];
    if (!fits) config.invalid("'{}' is an array of numbers; got {}", name, escape(json.dump(), 60));
    if (level == extents.size()) {
      found.push_back(&json);
    } else {
      for (const Json& item : json.items()) collect(item, level + 1);
    }
  }
};

template <class T>
T element(const Json& json) {
  if (json.is_bool()) return convert_element<T>(json.as_bool());
  return json.is_int() ? convert_element<T>(json.as_int()) : convert_element<T>(json.as_number());
}

// What NumPy makes of a list of Python's numbers, in Keras's default widths.
DType natural_dtype(const std::vector<const Json*>& leaves) {
  bool all_bool = !leaves.empty(), all_int = !leaves.empty();
  for (const Json* leaf : leaves) {
    all_bool = all_bool && leaf->is_bool();
    all_int = all_int && (leaf->is_bool() || leaf->is_int());
  }
  return all_bool ? DType::boolean : all_int ? DType::i32 : DType::f32;
}

}  // namespace

Operand::Operand(Graph& graph, const Json& number) : graph_(&graph), number_(number), type_(type_of_number(number)) {}

Value Operand::as(DType dtype) const {
  if (tensor_) return convert(tensor_, dtype);
  return dispatch(dtype, [&](auto zero) { return graph_->constant(Tensor::scalar(element<decltype(zero)>(number_))); });
}

bool is_object_of(const Json& json, std::string_view class_name) {
  const Json* name = json.is_object() ? json.find("class_name") : nullptr;
  return name != nullptr && name->is_string() && name->as_string() == class_name;
}

Tensor read_array(const Config& config, const Json& json, std::string_view name) {
  const Json* values = &json;
  std::optional<DType> dtype;
  if (is_object_of(json, "__tensor__") || is_object_of(json, "__numpy__")) {
    Config inner(Config(json, config.where()).at("config"), config.where());
    values = &inner.at("value");
    dtype = dtype_from_numpy(inner.text("dtype"));
    if (!dtype) config.unsupported("'{}' is an array of {}", name, inner.text("dtype"));
  }
  Ints extents;
  read_extents(config, *values, name, extents, 0);
  Leaves leaves{config, name, extents};
  leaves.collect(*values, 0);
  return dispatch(dtype.value_or(natural_dtype(leaves.found)), [&](auto zero) {
    using T = decltype(zero);
    Tensor out(dtype_of<T>(), Shape(extents));
    for (size_t i = 0; i < leaves.found.size(); ++i) out.as<T>()[i] = element<T>(*leaves.found[i]);
    return out;
  });
}

Json plain(const Call& c, const Argument& argument, std::string_view name) {
  if (argument.kind == Argument::Kind::constant) return argument.constant;
  if (argument.kind != Argument::Kind::list) c.config.unsupported("'{}' depends on the data; only known values are read here", name);
  JsonList items;
  for (const Argument& item : argument.items) items.push_back(plain(c, item, name));
  return items;
}

Operand to_operand(Call& c, const Argument& argument, std::string_view name) {
  if (argument.kind == Argument::Kind::tensor) return Operand(argument.tensor.value);
  Json json = plain(c, argument, name);
  if (json.is_number()) return Operand(c.graph, json);
  return Operand(c.graph.constant(read_array(c.config, json, name)));
}

std::optional<Operand> find_operand(Call& c, size_t position, std::string_view name) {
  const Argument* found = c.arguments.find(position, name);
  if (found == nullptr) return {};
  return to_operand(c, *found, name);
}

Operand operand(Call& c, size_t position, std::string_view name) {
  auto found = find_operand(c, position, name);
  if (!found) c.config.invalid("is called without '{}'", name);
  return *found;
}

std::vector<Operand> operand_list(Call& c, size_t position, std::string_view name) {
  const Argument* found = c.arguments.find(position, name);
  if (found == nullptr) c.config.invalid("is called without '{}'", name);
  // An array stands for the list of its slices.
  if (found->kind != Argument::Kind::list) {
    Value whole = to_operand(c, *found, name).value();
    if (whole.rank() < 1 || whole.extent(0) > most_parts)
      c.config.invalid("'{}' is a list of tensors; got {}", name, to_string(whole.type()));
    std::vector<Operand> out;
    Ints extents(whole.shape().begin() + 1, whole.shape().end());
    for (int64_t i = 0; i < whole.extent(0); ++i) {
      Ints start(static_cast<size_t>(whole.rank()), 0), limit = whole.shape().extents();
      start[0] = i;
      limit[0] = i + 1;
      out.emplace_back(reshape(slice(whole, start, limit), extents));
    }
    return out;
  }
  std::vector<Operand> out;
  for (const Argument& item : found->items) out.push_back(to_operand(c, item, name));
  if (out.empty()) c.config.invalid("'{}' is an empty list", name);
  return out;
}

Value array(Call& c, std::string_view name) { return operand(c, 0, name).value(); }

int64_t rows_at_this_batch(const Call& c, std::string_view name, int64_t rows) {
  const Argument* given = c.arguments.find(0, name);
  if (given == nullptr || given->written_rows < 1 || given->tensor.value.rank() < 1) return rows;
  const int64_t now = saturating_multiply(rows, given->tensor.value.extent(0));
  return now % given->written_rows == 0 ? now / given->written_rows : rows;
}

DType result_type(const std::vector<Operand>& operands) {
  std::vector<PromotedType> types;
  for (const Operand& o : operands) types.push_back(o.type());
  return result_type(std::span<const PromotedType>(types));
}
DType result_type(const Operand& a, const Operand& b) { return result_type({a.type(), b.type()}); }
DType result_type(const Operand& a, const Operand& b, PromotedType also) { return result_type({a.type(), b.type(), also}); }

std::vector<Value> promoted(const std::vector<Operand>& operands) {
  DType dtype = result_type(operands);
  std::vector<Value> out;
  for (const Operand& o : operands) out.push_back(o.as(dtype));
  return out;
}

int64_t wrapped_axis(const Config& config, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) config.invalid("axis {} is outside of rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

Ints reduction_axes(const Config& config, int64_t rank, std::string_view key) {
  Ints axes;
  if (!config.has(key)) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  for (int64_t axis : config.ints(key)) {
    axes.push_back(wrapped_axis(config, axis, rank));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1) config.invalid("axis {} is given twice", axis);
  }
  return axes;
}

DType dtype_option(const Config& config, DType otherwise) {
  if (!config.has("dtype")) return otherwise;
  auto dtype = dtype_from_numpy(config.text("dtype"));
  if (!dtype) config.unsupported("dtype '{}' is not known here", config.text("dtype"));
  return *dtype;
}

}  // namespace tutti::keras
