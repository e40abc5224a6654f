// Contrast-limited adaptive histogram equalization.
#pragma once

#include "tutti/graph/build.h"

namespace tutti::keras {

// images: f32 [n, h, w, c] of values from 0 to 255. Every tile of a grid [rows, columns] has its own curve, and pixels between the
// centres of tiles take a mixture of four.
Value equalize_tiles(Value images, const Ints& grid, double clip_limit);

}  // namespace tutti::keras
