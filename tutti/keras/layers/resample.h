// Images at another size, as Keras's JAX backend computes them (half-pixel centres, weights that sum to one), for the layers and for
// keras.ops.image. Images are [n, h, w, c] or [h, w, c], with channels_first [n, c, h, w] or [c, h, w]. What does not fit throws
// InvalidArgument.
#pragma once

#include "tutti/graph/build.h"

namespace tutti::keras {

class Call;
// The images a layer is called with; dictionaries of images, boxes and labels are refused.
Value image_input(const Call& c);

struct ImageAxes {
  int64_t height, width;
};
ImageAxes image_axes(Value images, bool channels_first);

// Which places of two sizes are the same: the borders, as it should be; the first pixels' centres alone; the first and the last ones'.
enum class Aligned { borders, first, corners };

struct Resample {
  int64_t height, width;
  std::string interpolation = "bilinear";  // or nearest, bicubic, lanczos3, lanczos5, area
  bool antialias = false;
  Aligned aligned = Aligned::borders;  // others with nearest and bilinear
};
// Integers come back as they were for nearest, as f32 otherwise.
Value resample(Value images, const Resample& options, bool channels_first);
// Rounded and cut to what an integer dtype holds.
Value rounded_to(Value x, DType dtype);

// The largest part from the middle with the proportions height : width.
Value crop_to_aspect_ratio(Value images, int64_t height, int64_t width, bool channels_first);
// Borders of `value` on two sides so that the proportions become (nearly) height : width.
Value pad_to_aspect_ratio(Value images, int64_t height, int64_t width, double value, bool channels_first);

// Images [n, h, w, c] under affine maps, [n, 8] or [1, 8]: pixel (y, x) of the result comes from (b0 x + b1 y + b2, a0 x + a1 y + a2); c0
// and c1 go with the channel's number, as in Keras. By the config's interpolation, fill_mode (or this one) and fill_value.
class Config;
Value affine_transformed(const Config& config, Value images, Value transform, const char* fill_mode);
// The same under projective maps: both places divided by c0 x + c1 y + 1. Outside of the images there is fill_value.
Value projectively_transformed(const Config& config, Value images, Value transform);
// The same with places of their own: every pixel comes from so far down and across, [n, h, w, 1].
Value displaced(const Config& config, Value images, Value down, Value across, const char* fill_mode);

}  // namespace tutti::keras
