#include "tutti/keras/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti::keras {

namespace {
const Json null_json;
}

void Config::refuse(const std::string& message) const { fail<Unsupported>("keras", "{}: {}", where_, message); }
void Config::reject(const std::string& message) const { fail<InvalidModel>("keras", "{}: {}", where_, message); }

const Json& Config::get(std::string_view key) const {
  const Json* found = json_->is_object() ? json_->find(key) : nullptr;
  return found == nullptr ? null_json : *found;
}

bool Config::has(std::string_view key) const { return !get(key).is_null(); }

const Json& Config::at(std::string_view key) const {
  const Json* found = json_->is_object() ? json_->find(key) : nullptr;
  if (found == nullptr) reject(fmt::format("config has no '{}'", key));
  return *found;
}

int64_t Config::integer(std::string_view key) const {
  const Json& value = at(key);
  bool whole =
      value.is_int() || (value.is_number() && std::abs(value.as_number()) < 1e15 && value.as_number() == std::trunc(value.as_number()));
  if (!whole) reject(fmt::format("'{}' is an integer; got {}", key, escape(value.dump(), 60)));
  return value.as_int();
}

int64_t Config::integer(std::string_view key, int64_t otherwise) const { return has(key) ? integer(key) : otherwise; }

int64_t Config::positive(std::string_view key, int64_t most) const { return positive(key, integer(key), most); }

int64_t Config::positive(std::string_view key, int64_t otherwise, int64_t most) const {
  int64_t value = integer(key, otherwise);
  if (value < 1 || value > most) reject(fmt::format("'{}' is between 1 and {}; got {}", key, most, value));
  return value;
}

double Config::number(std::string_view key) const {
  const Json& value = at(key);
  if (value.is_bool()) return value.as_bool() ? 1 : 0;
  if (!value.is_number()) reject(fmt::format("'{}' is a number; got {}", key, escape(value.dump(), 60)));
  return value.as_number();
}

double Config::number(std::string_view key, double otherwise) const { return has(key) ? number(key) : otherwise; }

bool Config::flag(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const Json& value = at(key);
  if (value.is_int() && (value.as_int() == 0 || value.as_int() == 1)) return value.as_int() == 1;
  if (!value.is_bool()) reject(fmt::format("'{}' is true or false; got {}", key, escape(value.dump(), 60)));
  return value.as_bool();
}

std::string Config::text(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_string()) reject(fmt::format("'{}' is a string; got {}", key, escape(value.dump(), 60)));
  return value.as_string();
}

std::string Config::text(std::string_view key, std::string_view otherwise) const { return has(key) ? text(key) : std::string(otherwise); }

Ints Config::ints(std::string_view key, int64_t count) const {
  const Json& value = at(key);
  if (value.is_int()) return Ints(static_cast<size_t>(count < 0 ? 1 : count), value.as_int());
  Ints out;
  bool fits = value.is_list();
  if (fits)
    for (const Json& item : value.items()) {
      fits = fits && item.is_int();
      if (fits) out.push_back(item.as_int());
    }
  if (!fits || (count >= 0 && static_cast<int64_t>(out.size()) != count))
    reject(fmt::format("'{}' is {} integers; got {}", key, count < 0 ? "a list of" : std::to_string(count), escape(value.dump(), 60)));
  return out;
}

Ints Config::ints(std::string_view key, int64_t count, Ints otherwise) const { return has(key) ? ints(key, count) : std::move(otherwise); }

std::vector<double> Config::numbers(std::string_view key) const {
  const Json& value = at(key);
  std::vector<double> out;
  if (!value.is_list()) reject(fmt::format("'{}' is a list of numbers; got {}", key, escape(value.dump(), 60)));
  for (const Json& item : value.items()) {
    if (!item.is_number()) reject(fmt::format("'{}' is a list of numbers; got {}", key, escape(value.dump(), 60)));
    out.push_back(item.as_number());
  }
  return out;
}

bool Config::channels_first() const {
  std::string format = text("data_format", "channels_last");
  if (format != "channels_last" && format != "channels_first")
    reject(fmt::format("'data_format' is channels_last or channels_first; got '{}'", format));
  return format == "channels_first";
}

namespace {

// "int8", "int4/128", "gptq/4/128"
void read_quantization_mode(const Config& config, const std::string& mode, Policy& policy) {
  size_t slash = mode.find('/');
  policy.quantization = mode.substr(0, slash);
  if (policy.quantization != "int4" || slash == std::string::npos) return;
  const char *begin = mode.data() + slash + 1, *end = mode.data() + mode.size();
  auto [stop, error] = std::from_chars(begin, end, policy.block_size);
  if (error != std::errc() || stop != end) config.invalid("an int4 policy is int4/BLOCK; got '{}'", mode);
}

Policy policy_from_name(const Config& config, const std::string& name) {
  Policy out;
  std::string base = name;
  if (size_t from = name.find("_from_"); from != std::string::npos) {
    read_quantization_mode(config, name.substr(0, from), out);
    base = name.substr(from + 6);
  }
  const size_t of = base.find("_of_");
  const auto compute = dtype_from_numpy(base.substr(0, of)),
             variable = of == std::string::npos ? compute : dtype_from_numpy(base.substr(of + 4));
  if (compute && variable) {
    out.compute = *compute;
    out.variable = *variable;
  } else if (base == "mixed_float16" || base == "mixed_bfloat16") {
    out.compute = base == "mixed_float16" ? DType::f16 : DType::bf16;
  } else if (base == "string") {
    config.unsupported("it takes strings; hint: split the model after what makes numbers of them, and feed these");
  } else {
    config.unsupported("dtype policy '{}' is not read; hint: save the model under a plain or mixed float policy", name);
  }
  return out;
}

}  // namespace

Policy read_policy(const Config& config) {
  const Json& dtype = config.get("dtype");
  if (dtype.is_null()) return {};
  if (dtype.is_string()) return policy_from_name(config, dtype.as_string());
  if (dtype.is_object()) {
    Config policy(dtype, config.where());
    std::string kind = policy.text("class_name", "");
    if (kind == "DTypePolicy" || kind == "Policy")
      return policy_from_name(config, Config(policy.at("config"), config.where()).text("name"));
    static constexpr std::string_view quantized[] = {"QuantizedDTypePolicy", "Int4DTypePolicy", "QuantizedFloat8DTypePolicy",
                                                     "GPTQDTypePolicy", "AWQDTypePolicy"};
    if (std::find(std::begin(quantized), std::end(quantized), kind) != std::end(quantized)) {
      Config inner(policy.at("config"), config.where());
      return policy_from_name(config, inner.text("mode") + "_from_" + inner.text("source_name"));
    }
    config.unsupported("dtype policy class '{}' is not read", kind);
  }
  config.invalid("'dtype' is a name or a policy; got {}", dtype.dump());
}

}  // namespace tutti::keras
