// The larger or the smaller of two tensors, with the gradient that Keras has where they are equal.
#pragma once

#include "tutti/graph/build.h"
#include "tutti/keras/layer.h"

namespace tutti::keras {

// Op::maximum or Op::minimum. While training, elements that are equal share the gradient, as on JAX; the rule of the op itself gives it to
// the second operand, as a relu wants it.
inline Value extreme(const Call& c, Op op, Value a, Value b) {
  if (!c.draws() || !is_float(a.dtype())) return binary(op, a, b);
  return binary(op, a, b) * 0.5 + binary(op, b, a) * 0.5;
}

}  // namespace tutti::keras
