// Colours of images [n, h, w, c], as keras.ops.image computes them.
#pragma once

#include "tutti/graph/build.h"

namespace tutti::keras {

Value rgb_to_gray(Value images);  // of three channels; [n, h, w, 1]
// Three channels of floats.
Value rgb_to_hsv(Value images);
Value hsv_to_rgb(Value images);

}  // namespace tutti::keras
