// Activation functions by name, as Dense(activation="gelu") and the Activation layer use them.
#pragma once

#include "tutti/keras/layer.h"

namespace tutti::keras {

// `activation` is null (linear), a name, a serialized function or a serialized layer, as configs hold it; throws Unsupported for anything
// else. hard_sigmoid and friends follow the file's Keras version.
Value activate(Call& c, const Json& activation, Value x);

}  // namespace tutti::keras
