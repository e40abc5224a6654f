// LoRA: a kernel plus the product of two thin ones. Keras merges it when it writes a .keras file and keeps it apart in .h5.
#pragma once

#include "tutti/keras/layer.h"

namespace tutti::keras {

// Whether the file keeps this layer's factors; its kernel is then not trainable.
bool has_lora(const Call& c);
// The kernel [..., out] with the factors [..., rank] and [rank, out] added. Asks for them, so it comes after the layer's other variables.
Value with_lora(Call& c, Value kernel);

}  // namespace tutti::keras
