// What layers draw while training.
#pragma once

#include "tutti/keras/layer.h"

namespace tutti::keras {

// Dropout: elements of x that are kept are divided by the share that is; `noise` broadcasts to x. x itself at inference.
// by_sample: as for Call::uniform.
Value dropped(Call& c, Value x, double rate, const Shape& noise, bool by_sample = true);

}  // namespace tutti::keras
