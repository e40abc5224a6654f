// Regularizers add to the loss; constraints change a weight after its update.
#pragma once

#include "tutti/graph/graph.h"
#include "tutti/keras/fit/named.h"

namespace tutti::keras {

// What a serialized regularizer makes of a value: a scalar in f32.
Value regularization(const Json& regularizer, Value x);
// The value a serialized constraint lets a weight have.
Value constrained(const Json& constraint, Value x);
// The key of a layer's config for a weight's regularizer or constraint: "recurrent_kernel" -> "recurrent_" + what.
std::string weight_option(std::string_view weight, std::string_view what);

}  // namespace tutti::keras
