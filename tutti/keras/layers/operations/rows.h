// What the tables of operations share: rows that say only what is special.
#pragma once

#include <limits>

#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/operations/operand.h"

namespace tutti::keras {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// An operation carries no mask; `options` are its constructor's arguments.
constexpr LayerRow operation(std::string_view name, LayerFunction function, std::string_view options = "", std::string_view note = "") {
  return {name, function, Masking::drop, options, note};
}

// Functions of one tensor x as operations.
template <Value (*f)(Value)>
Outputs on_any(Call& c) {
  return f(array(c));
}
template <Value (*f)(Value)>
Outputs on_float(Call& c) {
  Value x = array(c);
  return f(convert(x, float_type(x.dtype())));
}
// Functions that Keras defines for floats only.
template <Value (*f)(Value)>
Outputs on_float_only(Call& c) {
  Value x = array(c);
  if (!is_float(x.dtype())) c.config.invalid("takes floats; got {}", to_string(x.type()));
  return f(x);
}
template <Op op>
Value apply(Value x) {
  return unary(op, x);
}

}  // namespace tutti::keras
