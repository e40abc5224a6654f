// JSON as Python writes it (NaN and Infinity included): one value type for Keras configs, --json output and reports.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tutti {

class Json;
using JsonList = std::vector<Json>;
// Keys keep their order of appearance: Keras configs rely on it (dict inputs), and outputs read better.
using JsonMembers = std::vector<std::pair<std::string, Json>>;

class Json {
 public:
  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  template <std::integral T>
  Json(T value) {
    if (std::in_range<int64_t>(value))
      value_ = static_cast<int64_t>(value);
    else
      value_ = static_cast<uint64_t>(value);
  }
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(JsonList list);
  Json(JsonMembers members);
  static Json list() { return JsonList{}; }
  static Json object() { return JsonMembers{}; }

  // Budgets against hostile text (the values then take less than 200 MB); beyond them, or on any syntax error, a key given twice or text
  // that is not UTF-8, throws InvalidArgument("json", ... with line and column).
  struct Limits {
    uint64_t bytes = 32 << 20;
    int depth = 200;
    uint64_t values = 1'000'000;
  };
  static Json parse(std::string_view text, const Limits& limits);
  static Json parse(std::string_view text) { return parse(text, Limits{}); }
  std::string dump(int indent = -1) const;  // as Python's json.dumps; -1: one line with the separators ", " and ": "

  bool is_null() const;
  bool is_bool() const;
  bool is_int() const;       // written without point or exponent, and fits int64
  bool is_unsigned() const;  // likewise, of those beyond it that fit uint64; what is larger still is a float
  bool is_number() const;    // any of them, or float
  bool is_string() const;
  bool is_list() const;
  bool is_object() const;
  std::string_view kind() const;  // "null", "bool", "int", "float", "string", "list", "object"

  // Each throws InvalidArgument("json", "expected an int; got string") when the value is of another kind.
  bool as_bool() const;
  int64_t as_int() const;        // also from a float without fraction
  uint64_t as_unsigned() const;  // of is_unsigned()
  double as_number() const;
  const std::string& as_string() const;
  const JsonList& items() const;
  const JsonMembers& members() const;

  // Objects: find gives nullptr when absent; at throws naming the key and its nearest neighbours.
  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  void set(std::string key, Json value);  // replaces or appends; null becomes an object
  // Lists.
  size_t size() const;                         // of a list, object or string
  const Json& operator[](size_t index) const;  // bounds-checked
  void push(Json value);                       // null becomes a list

  bool operator==(const Json& other) const;

 private:
  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, JsonList, JsonMembers> value_ = nullptr;
};

}  // namespace tutti
