// The rules of simplify: tables of functions that look at a node about to be made, and may make something simpler instead. Operands are
// simplified already, and what a rule makes goes through the rules again, so one walk over a graph is enough.
#pragma once

#include <span>

#include "tutti/transform/rebuild.h"

namespace tutti {

class Simplifier {
 public:
  explicit Simplifier(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }

  // The one result of the node, or of what the rules make of it.
  Value make(Op op, const std::vector<Value>& operands, const Attributes& attributes = {});
  Value reshape(Value x, const Shape& shape);
  Value broadcast(Value x, const Shape& shape, const Ints& dimensions);
  Value transpose(Value x, const Ints& permutation);
  Value slice(Value x, const Ints& start, const Ints& limit, const Ints& strides);
  // A constant of the type of `like`, every element `number`.
  Value full_like(Value like, double number);

 private:
  Graph& graph_;
  int depth_ = 0;  // of rules that make nodes
};

struct Candidate {
  Op op;
  const std::vector<Value>& operands;
  const Attributes& attributes;
  Value operator[](size_t i) const { return operands[i]; }
};

// The value to use instead, or none.
using Rule = Value (*)(Simplifier&, const Candidate&);

struct RuleRow {
  Op op;
  Rule rule;
};

std::span<const RuleRow> arithmetic_rules(), movement_rules(), contraction_rules();
// For every elementwise op, after its own rules.
Value lift_broadcasts(Simplifier& to, const Candidate& node);
Value lift_reshapes(Simplifier& to, const Candidate& node);
Value lift_transposes(Simplifier& to, const Candidate& node);
Value squeeze_constants(Simplifier& to, const Candidate& node);

// For ops whose named attributes have an entry an axis and whose first operand may be transposed: the op on what was transposed, then the
// transpose.
Value below_transpose(Simplifier& to, const Candidate& node, std::initializer_list<const char*> attributes);

Ints inverse_of(const Ints& permutation);

// The operand of the node that made `value` if that node is of `op`, else none.
inline Value operand_of(Value value, Op op, size_t i = 0) {
  const Node& node = made_by(value);
  return node.op == op ? Value(&value.graph(), node.operands[i]) : Value();
}

}  // namespace tutti
