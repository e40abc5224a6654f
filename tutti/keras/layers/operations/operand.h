// What keras.ops operations are called with. In a file an argument is a tensor of the model, an array, or a Python number, whose dtype is
// settled only by what it meets (promote.h).
#pragma once

#include "tutti/keras/layer.h"
#include "tutti/keras/promote.h"

namespace tutti::keras {

class Operand {
 public:
  explicit Operand(Value tensor) : tensor_(tensor), type_(tensor.dtype()) {}
  // A Python int or float, which becomes a constant once its dtype is known.
  Operand(Graph& graph, const Json& number);

  PromotedType type() const { return type_; }
  bool is_number() const { return !tensor_; }
  Value as(DType dtype) const;
  Value value() const { return as(type_.dtype); }  // a number in Keras's default dtype

 private:
  Value tensor_;
  Graph* graph_ = nullptr;
  Json number_;
  PromotedType type_;
};

// By position or by name. Absent or null: `operand` throws InvalidModel, `find_operand` gives nothing.
Operand operand(Call& c, size_t position, std::string_view name);
std::optional<Operand> find_operand(Call& c, size_t position, std::string_view name);
// The same, of a list of tensors, arrays and numbers (concatenate, stack).
std::vector<Operand> operand_list(Call& c, size_t position, std::string_view name);
Operand to_operand(Call& c, const Argument& argument, std::string_view name);
// The first argument in its own dtype.
Value array(Call& c, std::string_view name = "x");
// A file whose batch is fixed writes it into the shapes of its operations: `rows`, along the first axis of what is made of the first
// argument, at the batch that runs.
int64_t rows_at_this_batch(const Call& c, std::string_view name, int64_t rows);

DType result_type(const std::vector<Operand>& operands);
DType result_type(const Operand& a, const Operand& b);
DType result_type(const Operand& a, const Operand& b, PromotedType also);
std::vector<Value> promoted(const std::vector<Operand>& operands);

// An argument without tensors as plain JSON: numbers, lists, slices.
Json plain(const Call& c, const Argument& argument, std::string_view name);
// A nested list of numbers, or Keras's {"class_name": "__tensor__" or "__numpy__", "config": {"value", "dtype"}}.
Tensor read_array(const Config& config, const Json& json, std::string_view name);
// Whether JSON is an object of Keras's own kinds "__slice__", "__ellipsis__", "__tensor__", ...
bool is_object_of(const Json& json, std::string_view class_name);

// "axis" of a reduction: every axis when null. Not negative, inside of the rank, none twice.
Ints reduction_axes(const Config& config, int64_t rank, std::string_view key = "axis");
int64_t wrapped_axis(const Config& config, int64_t axis, int64_t rank);
// "dtype" of the config, or `otherwise` when null.
DType dtype_option(const Config& config, DType otherwise);

// Graphs are unrolled for shapes; a file may not make them arbitrarily large.
inline constexpr int64_t most_parts = 4096;          // results of a split, terms of an unrolled sum
inline constexpr int64_t most_elements = 1ll << 24;  // of a constant that is computed from a config

}  // namespace tutti::keras
