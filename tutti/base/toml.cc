#include "tutti/base/toml.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 1
#include <toml++/toml.h>

#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/utf8.h"

namespace tutti {

namespace {

Json json_of_toml(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    Json out = Json::object();
    for (const auto& [key, value] : *table) out.set(std::string(key.str()), json_of_toml(value));
    return out;
  }
  if (const auto* list = node.as_array()) {
    Json out = Json::list();
    for (const auto& value : *list) out.push(json_of_toml(value));
    return out;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* truth = node.as_boolean()) return truth->get();
  std::ostringstream text;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_date<decltype(value)> || toml::is_time<decltype(value)> || toml::is_date_time<decltype(value)>)
      text << value.get();
  });
  return text.str();
}

}  // namespace

Json parse_toml(std::string_view text, size_t limit) {
  if (text.size() > limit) fail<InvalidArgument>("toml", "the file has {} bytes, more than {}", text.size(), limit);
  const toml::parse_result result = toml::parse(text);
  if (!result)
    fail<InvalidArgument>("toml", "line {}, column {}: {}", result.error().source().begin.line, result.error().source().begin.column,
                          result.error().description());
  return json_of_toml(result.table());
}

std::string toml_text(const Json& value) {
  if (!value.is_list()) return value.dump();  // TOML's basic strings have JSON's escapes
  std::string out = "[";
  for (const Json& item : value.items()) out += (out.size() > 1 ? ", " : "") + toml_text(item);
  return out + "]";
}

}  // namespace tutti
