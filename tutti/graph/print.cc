// The text of a graph. parse.cc reads it; the two change together.
#include <fmt/format.h>

#include "tutti/base/utf8.h"
#include "tutti/graph/graph.h"

namespace tutti {

namespace {

// Anything but printable text is escaped, so that names of any bytes stay on their line and come back.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    size_t length = utf8_length(text, i);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i];
    } else if (length == 0 || byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
      length = 1;
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out + '"';
}

// A number is told from an integer by its point, exponent or word.
std::string number(double value) {
  std::string out = fmt::format("{}", value);
  return out.find_first_of(".einf") == std::string::npos ? out + ".0" : out;
}

std::string attribute(const AttributeValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return number(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return in_quotes(*text);
  return to_string(std::get<Ints>(value));
}

template <class T>
std::string element(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) {
    return element(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return value != value ? "nan" : fmt::format("{}", value);
  } else {
    return fmt::format("{}", static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
  }
}

std::string literal(const Tensor& tensor, int64_t longest) {
  if (tensor.elements() > longest) return "<...>";
  std::string out = "<";
  dispatch(tensor.dtype(), [&](auto zero) {
    for (auto value : tensor.as<decltype(zero)>()) out += (out.size() > 1 ? ", " : "") + element<decltype(zero)>(value);
  });
  return out + ">";
}

template <class List, class F>
std::string joined(const List& list, F&& text) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : ", ") + text(item);
  return out;
}

std::string value(ValueId id) { return fmt::format("%{}", id); }

void print_lines(const Graph& graph, int64_t longest, const std::string& indent, std::string& out) {
  for (const Node& node : graph.nodes()) {
    out += indent;
    if (!node.results.empty()) out += joined(node.results, value) + " = ";
    out += name(node.op);
    if (!node.operands.empty()) out += fmt::format("({})", joined(node.operands, value));
    if (!node.attributes.items().empty())
      out += " {" + joined(node.attributes.items(), [](const Attribute& a) { return a.name + " = " + attribute(a.value); }) + "}";
    if (node.op == Op::constant) out += " " + literal(node.literal, longest);
    if (node.body) {
      out += " {\n";
      print_lines(*node.body, longest, indent + "  ", out);
      out += indent + "}";
    }
    if (!node.results.empty()) out += " : " + joined(node.results, [&](ValueId id) { return to_string(graph.type(id)); });
    out += "\n";
  }
  for (const auto& update : graph.updates()) out += fmt::format("{}update %{} = %{}\n", indent, update.state, update.next);
  if (!graph.outputs().empty())
    out += indent + "return " + joined(graph.outputs(), [](const auto& o) { return value(o.value) + " " + in_quotes(o.name); }) + "\n";
}

}  // namespace

std::string print_graph(const Graph& graph, int64_t longest) {
  std::string out = "graph {\n";
  print_lines(graph, longest, "  ", out);
  return out + "}\n";
}

}  // namespace tutti
