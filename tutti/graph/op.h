// The op table: one row an op. Verifier, printer, parser, coverage report and documents read it; there is no second list of op names.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/base/tensor.h"
#include "tutti/graph/attributes.h"

namespace tutti {

class Graph;
struct Batched;       // batching.h
struct BatchedNode;   // batching.h
struct GradientNode;  // gradient.h
class Value;          // graph.h

enum class Op : uint8_t {
#define TUTTI_OP(name, at_least, at_most, op_class, rule, batching, gradient, attributes) name,
#include "tutti/graph/op_list.h"
#undef TUTTI_OP
};

enum class OpClass : uint8_t { leaf, unary, binary, ternary, movement, reduction, contraction, control };

// What a type rule sees: the operands' types and the attributes; for leaves also the declared type, for scan also the body.
struct Signature {
  Op op;
  std::span<const Type> operands;
  const Attributes& attributes;
  const Type* declared = nullptr;
  const Graph* body = nullptr;
};

struct OpRow {
  Op op;
  std::string_view name;
  int at_least, at_most;  // operands
  OpClass op_class;
  std::vector<Type> (*infer)(const Signature&);         // result types; throws InvalidArgument when the operands do not fit
  std::vector<Batched> (*batch)(const BatchedNode&);    // the node for many models at once: batching.h
  std::vector<Value> (*gradient)(const GradientNode&);  // from its results' cotangents to its operands': gradient.h
  std::string_view attributes;                          // "name:kind ..."
};

std::span<const OpRow> op_table();
const OpRow& row(Op op);
// Of one to three operands, each element of the result from the elements at its place.
bool is_elementwise(Op op);
std::string_view name(Op op);  // "add"; trailing underscores of C++ keywords are dropped: "not", "and"
std::optional<Op> op_from_name(std::string_view name);

// Checks arity and attribute names and kinds, then applies the op's type rule.
std::vector<Type> infer_types(const Signature& signature);

}  // namespace tutti
