// Json::dump: the characters that Python's json.dumps writes, non-ASCII escaped, doubles in their shortest form that reads back the same.
#include <charconv>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/utf8.h"

namespace tutti {

namespace {

void dump_double(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
  } else {
    char buffer[64];
    double magnitude = std::abs(value);
    bool fixed = value == 0 || (magnitude >= 1e-4 && magnitude < 1e16);  // Python's choice of notation
    auto end = std::to_chars(buffer, buffer + sizeof buffer, value, fixed ? std::chars_format::fixed : std::chars_format::scientific).ptr;
    std::string_view text(buffer, end);
    out += text;
    if (text.find_first_of(".e") == text.npos) out += ".0";
  }
}

void dump_string(std::string& out, std::string_view text) {
  static constexpr std::string_view from = "\"\\\b\f\n\r\t", to = "\"\\bfnrt";
  out += '"';
  for (size_t i = 0; i < text.size();) {
    size_t length = utf8_length(text, i);
    char32_t code = length ? utf8_decode(text.substr(i, length)) : 0xfffd;  // a byte that is no UTF-8, say of a file name
    i += std::max<size_t>(length, 1);
    if (size_t special = code < 0x80 ? from.find(static_cast<char>(code)) : from.npos; special != from.npos) {
      out += '\\';
      out += to[special];
    } else if (code >= 0x20 && code < 0x7f) {
      out += static_cast<char>(code);
    } else if (code < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
    } else {
      auto above = static_cast<uint32_t>(code - 0x10000);
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (above >> 10), 0xdc00 + (above & 0x3ff));
    }
  }
  out += '"';
}

void dump_value(std::string& out, const Json& value, int indent, int depth);

// The shared shape of lists and objects: brackets, commas, and one element a line when indented.
template <class Elements, class Each>
void dump_elements(std::string& out, const Elements& elements, std::string_view brackets, int indent, int depth, Each each) {
  out += brackets[0];
  auto new_line = [&](int level) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent * level), ' ');
  };
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i > 0) out += indent < 0 ? ", " : ",";
    new_line(depth + 1);
    each(elements[i]);
  }
  if (!elements.empty()) new_line(depth);
  out += brackets[1];
}

void dump_value(std::string& out, const Json& value, int indent, int depth) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    out += std::to_string(value.as_int());
  } else if (value.is_unsigned()) {
    out += std::to_string(value.as_unsigned());
  } else if (value.is_number()) {
    dump_double(out, value.as_number());
  } else if (value.is_string()) {
    dump_string(out, value.as_string());
  } else if (value.is_list()) {
    dump_elements(out, value.items(), "[]", indent, depth, [&](const Json& item) { dump_value(out, item, indent, depth + 1); });
  } else {
    dump_elements(out, value.members(), "{}", indent, depth, [&](const auto& member) {
      dump_string(out, member.first);
      out += ": ";
      dump_value(out, member.second, indent, depth + 1);
    });
  }
}

}  // namespace

std::string Json::dump(int indent) const {
  std::string out;
  dump_value(out, *this, indent, 0);
  return out;
}

}  // namespace tutti
