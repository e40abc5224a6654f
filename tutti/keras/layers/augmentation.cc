// Image augmentation: nothing happens at inference, but for the layers that are not random.
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/histogram_equalization.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

// Integers become floats in some of them.
Outputs to_float(Call& c) { return convert(image_input(c), c.policy.compute); }

Outputs unchanged(Call& c) { return c.lowering.keras_major == 2 ? convert(image_input(c), c.policy.compute) : image_input(c); }

struct Range {
  double low, high;
  bool operator==(const Range&) const = default;
};

Range value_range(const Config& config) {
  if (!config.has("value_range")) return {0, 255};
  auto range = config.numbers("value_range");
  if (range.size() != 2 || range[0] == range[1]) config.invalid("'value_range' is two numbers; got {}", config.get("value_range").dump());
  return {range[0], range[1]};
}

constexpr Range byte_range{0, 255};

Value change_range(Value x, DType dtype, Range from, Range to) {
  if (from == to) return x;
  Value part = (convert(x, dtype) - from.low) / (from.high - from.low);
  return part * (to.high - to.low) + to.low;
}

// Each channel of an image stretched over the whole range; an image of one colour stays as it is.
Outputs auto_contrast(Call& c) {
  Range range = value_range(c.config);
  Value images = image_input(c), original = images;
  if (images.rank() != 3 && images.rank() != 4) c.config.invalid("takes images of rank 3 or 4; got {}", to_string(images.shape()));
  int64_t height = images.rank() - 3;
  Value x = convert(change_range(images, c.policy.compute, range, byte_range), c.policy.compute);
  Value low = reduce_min(x, {height, height + 1}, true), high = reduce_max(x, {height, height + 1}, true);
  Value scale = 255.0 / (high - low);
  Value y = change_range(clamp(x * scale - low * scale, 0, 255), c.policy.compute, byte_range, range);
  return select(is_nan(y), convert(original, y.dtype()), y);
}

Outputs clahe(Call& c) {
  Range range = value_range(c.config);
  bool first = c.config.channels_first();
  Value images = image_input(c);
  DType dtype = images.dtype();
  image_axes(images, first);
  bool single = images.rank() == 3;
  if (single) images = expand_dims(images, {0});
  if (first) images = transpose(images, {0, 2, 3, 1});
  images = convert(change_range(images, DType::f32, range, byte_range), DType::f32);
  Value y = equalize_tiles(images, c.config.ints("tile_grid_size", 2, {8, 8}), c.config.number("clip_limit", 4));
  y = convert(change_range(y, DType::f32, byte_range, range), dtype);
  if (first) y = transpose(y, {0, 3, 1, 2});
  return single ? squeeze(y, {0}) : y;
}

// Options say what happens in training, so any will do.
constexpr std::string_view random_options = "*";

}  // namespace

Rows augmentation_layers() {
  static const LayerRow rows[] = {
      {"AugMix", to_float, Masking::drop, random_options},
      {"AutoContrast", auto_contrast, Masking::drop, "value_range data_format bounding_box_format"},
      {"ContrastLimitedAdaptiveHistogramEqualization", clahe, Masking::drop,
       "value_range clip_limit tile_grid_size data_format bounding_box_format"},
      {"CutMix", to_float, Masking::drop, random_options},
      {"Equalization", unchanged, Masking::drop, random_options},
      {"MaxNumBoundingBoxes", unchanged, Masking::drop, random_options, "images alone; dictionaries are refused"},
      {"MixUp", unchanged, Masking::drop, random_options},
      {"RandAugment", to_float, Masking::drop, random_options},
      {"RandomBrightness", unchanged, Masking::drop, random_options},
      {"RandomColorDegeneration", unchanged, Masking::drop, random_options},
      {"RandomColorJitter", unchanged, Masking::drop, random_options},
      {"RandomContrast", unchanged, Masking::drop, random_options},
      {"RandomElasticTransform", to_float, Masking::drop, random_options},
      {"RandomErasing", to_float, Masking::drop, random_options},
      {"RandomFlip", to_float, Masking::drop, random_options},
      {"RandomGaussianBlur", to_float, Masking::drop, random_options},
      {"RandomGrayscale", unchanged, Masking::drop, random_options},
      {"RandomHeight", to_float, Masking::drop, random_options, "of Keras 2"},
      {"RandomHue", unchanged, Masking::drop, random_options},
      {"RandomInvert", unchanged, Masking::drop, random_options},
      {"RandomPerspective", to_float, Masking::drop, random_options},
      {"RandomPosterization", unchanged, Masking::drop, random_options},
      {"RandomRotation", to_float, Masking::drop, random_options},
      {"RandomSaturation", unchanged, Masking::drop, random_options},
      {"RandomSharpness", to_float, Masking::drop, random_options},
      {"RandomShear", to_float, Masking::drop, random_options},
      {"RandomTranslation", to_float, Masking::drop, random_options},
      {"RandomWidth", to_float, Masking::drop, random_options, "of Keras 2"},
      {"RandomZoom", to_float, Masking::drop, random_options},
      {"Solarization", to_float, Masking::drop, random_options},
  };
  return rows;
}

}  // namespace tutti::keras
