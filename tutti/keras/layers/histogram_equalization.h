// Histogram equalization: of whole channels, and the adaptive one with limited contrast.
#pragma once

#include "tutti/graph/build.h"

namespace tutti::keras {

// images: f32 [n, h, w, c] of values from 0 to 255. Every tile of a grid [rows, columns] has its own curve, and pixels between the
// centres of tiles take a mixture of four.
Value equalize_tiles(Value images, const Ints& grid, double clip_limit);

// images: f32 [n, h, w, c] of values from 0 to 255. Each channel has one curve for all images, by counts in so many equal bins; a channel
// that fills one bin stays as it is.
Value equalize_channels(Value images, int64_t bins);

}  // namespace tutti::keras
