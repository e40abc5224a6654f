// A layer's config as its function reads it: typed, with Keras's defaults, and errors that name the layer.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>

#include "tutti/base/dtype.h"
#include "tutti/base/json.h"
#include "tutti/base/shape.h"

namespace tutti::keras {

class Config {
 public:
  // `where` names the layer in errors: "layer 'dense_3' (Dense)".
  Config(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {}

  const Json& json() const { return *json_; }
  const std::string& where() const { return where_; }
  bool has(std::string_view key) const;         // present and not null
  const Json& at(std::string_view key) const;   // throws InvalidModel when absent; may be null
  const Json& get(std::string_view key) const;  // null when absent

  // Without a default the key is required. Null counts as absent.
  int64_t integer(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t otherwise) const;
  // From 1 to `most`.
  int64_t positive(std::string_view key, int64_t most = int64_t{1} << 32) const;
  int64_t positive(std::string_view key, int64_t otherwise, int64_t most) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  // A list of integers, or one integer standing for `count` equal ones (Keras's tuples); any length when count < 0.
  Ints ints(std::string_view key, int64_t count = -1) const;
  Ints ints(std::string_view key, int64_t count, Ints otherwise) const;
  std::vector<double> numbers(std::string_view key) const;
  bool channels_first() const;  // "data_format"

  // Throws, prefixed with the layer.
  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    refuse(fmt::vformat(format, fmt::make_format_args(args...)));
  }
  template <class... Args>
  [[noreturn]] void invalid(fmt::format_string<Args...> format, Args&&... args) const {
    reject(fmt::vformat(format, fmt::make_format_args(args...)));
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const;  // Unsupported
  [[noreturn]] void reject(const std::string& message) const;  // InvalidModel
  const Json* json_;
  std::string where_;
};

// A dtype policy: what a layer computes in and what its variables are stored as.
struct Policy {
  DType compute = DType::f32, variable = DType::f32;
  std::string quantization = "";  // "int8", "int4", "float8", ... after model.quantize()
  int64_t block_size = -1;        // of int4
};
// From a config's "dtype": a name ("float32", "mixed_float16") or a serialized DTypePolicy / legacy Policy; absent means float32. Our own
// wrappers also say "float32_of_float64": the compute dtype, and that of the variables.
Policy read_policy(const Config& config);

}  // namespace tutti::keras
