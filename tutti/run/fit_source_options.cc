#include "tutti/run/fit_source_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti {

SourceOptions::SourceOptions(const DataSource& source, std::string what, std::initializer_list<const char*> known)
    : source_(source), what_(std::move(what)) {
  for (const auto& [key, value] : source.options.members())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail<InvalidArgument>("fit", "'{}' is no option of {}{}", escape(key, 40), what_,
                            did_you_mean(key, std::vector<std::string>(known.begin(), known.end())));
}

std::string SourceOptions::text(const char* key, const std::string& otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) refuse(key, "is text", *value);
  return value->as_string();
}

std::string SourceOptions::choice(const char* key, const std::vector<std::string>& names, const std::string& otherwise) const {
  std::string out = text(key, otherwise);
  if (std::find(names.begin(), names.end(), out) == names.end() && out != otherwise)
    fail<InvalidArgument>("fit", "'{}' is one of {}; got '{}'{}", key, fmt::join(names, ", "), escape(out, 40), did_you_mean(out, names));
  return out;
}

int64_t SourceOptions::whole(const char* key, int64_t otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_int() || value->as_int() < 1 || value->as_int() > 1'000'000'000)
    refuse(key, "is a whole number between 1 and 1000000000", *value);
  return value->as_int();
}

bool SourceOptions::flag(const char* key) const {
  const Json* value = find(key);
  if (value != nullptr && !value->is_bool()) refuse(key, "is true or false", *value);
  return value != nullptr && value->as_bool();
}

std::vector<std::string> SourceOptions::names(const char* key) const {
  const Json* value = find(key);
  std::vector<std::string> out;
  if (value == nullptr) return out;
  if (value->is_string()) return {value->as_string()};
  if (!value->is_list()) refuse(key, "is a list of names", *value);
  for (const Json& item : value->items()) {
    if (!item.is_string()) refuse(key, "is a list of names", *value);
    out.push_back(item.as_string());
  }
  return out;
}

std::string SourceOptions::numbers(const char* key, const char* between) const {
  const Json* value = find(key);
  if (value == nullptr) return "";
  const auto one = [&](const Json& item) {
    if (item.is_string()) return item.as_string();
    if (!item.is_number()) refuse(key, "is a number, or a list of them", *value);
    return item.is_int() ? std::to_string(item.as_int()) : fmt::format("{}", item.as_number());
  };
  if (!value->is_list()) return one(*value);
  std::string out;
  for (const Json& item : value->items()) out += (out.empty() ? "" : between) + one(item);
  return out;
}

void SourceOptions::refuse(const char* key, std::string_view rule, const Json& value) const {
  fail<InvalidArgument>("fit", "{}: '{}' {}; got {}", what_, key, rule, escape(value.dump(), 60));
}

std::string list_of_names(const std::vector<std::string>& names) {
  std::string found;
  for (size_t k = 0; k < std::min<size_t>(names.size(), 20); ++k) found += fmt::format("{}'{}'", k ? ", " : "", escape(names[k], 60));
  return found.empty() ? "none" : found;
}

std::vector<Json> lists_by_name(const Json& json, const std::vector<std::string>& names, const char* key, const std::vector<bool>& needed) {
  std::vector<Json> out;
  const auto list = [&](const Json& value) {
    Json items = value.is_list() ? value : Json(JsonList{value});
    const bool are_names = std::string_view(key) == "arrays";
    for (const Json& item : items.items())
      if (!item.is_string() && (are_names || !item.is_int()))
        fail<InvalidArgument>("fit", "'{}' are names{}; got {}", key, are_names ? "" : ", or whole numbers", escape(json.dump(), 60));
    if (items.size() == 0) fail<InvalidArgument>("fit", "'{}' has none", key);
    return items;
  };
  if (!json.is_object()) {
    if (names.size() != 1)
      fail<InvalidArgument>("fit", "'{}' is a table by name where the model has {}: {}", key, names.size(), list_of_names(names));
    return {list(json)};
  }
  for (const auto& [name, value] : json.members())
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail<InvalidArgument>("fit", "'{}' names '{}'{}; the model has {}", key, escape(name, 60), did_you_mean(name, names),
                            list_of_names(names));
  for (size_t i = 0; i < names.size(); ++i) {
    const Json* value = json.find(names[i]);
    if (value == nullptr && (needed.empty() || needed[i]))
      fail<InvalidArgument>("fit", "'{}' has none for '{}'", key, escape(names[i], 60));
    out.push_back(value == nullptr ? Json() : list(*value));
  }
  return out;
}

}  // namespace tutti
