#include "tutti/graph/op.h"

#include "tutti/base/error.h"
#include "tutti/graph/batching.h"
#include "tutti/graph/gradient.h"
#include "tutti/graph/type_rules.h"

namespace tutti {

namespace {

constexpr std::string_view spelling(std::string_view name) { return name.ends_with('_') ? name.substr(0, name.size() - 1) : name; }

constexpr OpRow ops[] = {
#define TUTTI_OP(name, at_least, at_most, op_class, rule, batching, gradient, attributes)                                                  \
  {Op::name,  spelling(#name), at_least, at_most, OpClass::op_class, type_rules::rule, batching_rules::batching, gradient_rules::gradient, \
   attributes},
#include "tutti/graph/op_list.h"
#undef TUTTI_OP
};

bool is_kind(const AttributeValue& value, std::string_view kind) {
  return (kind == "int" && std::holds_alternative<int64_t>(value)) || (kind == "number" && std::holds_alternative<double>(value)) ||
         (kind == "text" && std::holds_alternative<std::string>(value)) || (kind == "ints" && std::holds_alternative<Ints>(value));
}

void check_attributes(const OpRow& r, const Attributes& attributes) {
  size_t known = 0;
  std::string_view rest = r.attributes;
  while (!rest.empty()) {
    size_t space = rest.find(' ');
    std::string_view item = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
    std::string_view wanted = item.substr(0, item.find(':')), kind = item.substr(item.find(':') + 1);
    bool found = false;
    for (const auto& a : attributes.items()) found |= a.name == wanted && is_kind(a.value, kind);
    if (!found) fail<InvalidArgument>("graph", "{} needs attribute {}", r.name, item);
    ++known;
  }
  if (attributes.items().size() != known) fail<InvalidArgument>("graph", "{} takes attributes '{}' only", r.name, r.attributes);
}

}  // namespace

std::span<const OpRow> op_table() { return ops; }
const OpRow& row(Op op) { return ops[static_cast<size_t>(op)]; }
bool is_elementwise(Op op) {
  const OpClass c = row(op).op_class;
  return c == OpClass::unary || c == OpClass::binary || c == OpClass::ternary;
}

std::string_view name(Op op) { return row(op).name; }

std::optional<Op> op_from_name(std::string_view name) {
  for (const auto& r : ops)
    if (r.name == name) return r.op;
  return {};
}

std::vector<Type> infer_types(const Signature& signature) {
  const OpRow& r = row(signature.op);
  auto count = static_cast<int64_t>(signature.operands.size());
  if (count < r.at_least || count > r.at_most) fail<InvalidArgument>("graph", "{} takes {} operands; got {}", r.name, r.at_least, count);
  check_attributes(r, signature.attributes);
  return r.infer(signature);
}

}  // namespace tutti
