#include "tutti/base/json.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti {

Json::Json(JsonList list) : value_(std::move(list)) {}
Json::Json(JsonMembers members) : value_(std::move(members)) {}

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_bool() const { return std::holds_alternative<bool>(value_); }
bool Json::is_int() const { return std::holds_alternative<int64_t>(value_); }
bool Json::is_unsigned() const { return std::holds_alternative<uint64_t>(value_); }
bool Json::is_number() const { return is_int() || is_unsigned() || std::holds_alternative<double>(value_); }
bool Json::is_string() const { return std::holds_alternative<std::string>(value_); }
bool Json::is_list() const { return std::holds_alternative<JsonList>(value_); }
bool Json::is_object() const { return std::holds_alternative<JsonMembers>(value_); }

std::string_view Json::kind() const {
  static constexpr std::string_view kinds[] = {"null", "bool", "int", "int", "float", "string", "list", "object"};
  return kinds[value_.index()];
}

namespace {
[[noreturn]] void wrong_kind(std::string_view expected, const Json& got) {
  fail<InvalidArgument>("json", "expected {}; got {}", expected, got.kind());
}
}  // namespace

bool Json::as_bool() const {
  if (auto* value = std::get_if<bool>(&value_)) return *value;
  wrong_kind("a bool", *this);
}

int64_t Json::as_int() const {
  if (auto* value = std::get_if<int64_t>(&value_)) return *value;
  if (auto* value = std::get_if<double>(&value_)) {
    // 2^63 is a double, the largest int64 is not.
    if (std::trunc(*value) == *value && *value >= -0x1p63 && *value < 0x1p63) return static_cast<int64_t>(*value);
    fail<InvalidArgument>("json", "expected an int; got {}", dump());
  }
  if (is_unsigned()) fail<InvalidArgument>("json", "expected an int of 64 bits; got {}", dump());
  wrong_kind("an int", *this);
}

uint64_t Json::as_unsigned() const {
  if (auto* value = std::get_if<uint64_t>(&value_)) return *value;
  wrong_kind("an int of more than 63 bits", *this);
}

double Json::as_number() const {
  if (auto* value = std::get_if<double>(&value_)) return *value;
  if (auto* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  if (auto* value = std::get_if<uint64_t>(&value_)) return static_cast<double>(*value);
  wrong_kind("a number", *this);
}

const std::string& Json::as_string() const {
  if (auto* value = std::get_if<std::string>(&value_)) return *value;
  wrong_kind("a string", *this);
}

const JsonList& Json::items() const {
  if (auto* value = std::get_if<JsonList>(&value_)) return *value;
  wrong_kind("a list", *this);
}

const JsonMembers& Json::members() const {
  if (auto* value = std::get_if<JsonMembers>(&value_)) return *value;
  wrong_kind("an object", *this);
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members())
    if (name == key) return &value;
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (auto* value = find(key)) return *value;
  std::vector<std::string> known;
  for (const auto& member : members()) known.push_back(member.first);
  fail<InvalidArgument>("json", "key '{}' is missing{}", key, did_you_mean(key, known));
}

void Json::set(std::string key, Json value) {
  if (is_null()) value_ = JsonMembers{};
  if (auto* old = const_cast<Json*>(find(key)))
    *old = std::move(value);
  else
    std::get<JsonMembers>(value_).emplace_back(std::move(key), std::move(value));
}

size_t Json::size() const {
  if (is_list()) return items().size();
  if (is_object()) return members().size();
  if (is_string()) return as_string().size();
  wrong_kind("a list, an object or a string", *this);
}

const Json& Json::operator[](size_t index) const {
  const auto& list = items();
  if (index >= list.size()) fail<InvalidArgument>("json", "index {} is outside of a list of {}", index, list.size());
  return list[index];
}

void Json::push(Json value) {
  if (is_null()) value_ = JsonList{};
  if (!is_list()) wrong_kind("a list", *this);
  std::get<JsonList>(value_).push_back(std::move(value));
}

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

}  // namespace tutti
