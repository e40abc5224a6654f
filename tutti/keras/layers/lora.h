// LoRA: a kernel, which is not trained, plus the product of two thin ones, which are. Keras merges it when it writes a .keras file, whose
// factors begin at zero again, and keeps it apart in .h5.
#pragma once

#include "tutti/keras/layer.h"

namespace tutti::keras {

// Whether the layer has factors; its kernel is then not trainable.
bool has_lora(const Call& c);
// The kernel [..., out] with the factors [..., rank] and [rank, out] added. Asks for them, so it comes after the layer's other variables.
// `option`: what the kernel is called in the config.
Value with_lora(Call& c, Value kernel, std::string_view option = "kernel");

}  // namespace tutti::keras
