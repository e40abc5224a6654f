// Images of another size.
#include <algorithm>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

Outputs resizing(Call& c) {
  bool first = c.config.channels_first(), legacy = c.lowering.keras_major == 2;
  Resample options{c.config.integer("height"), c.config.integer("width"), c.config.text("interpolation", "bilinear"),
                   c.config.flag("antialias", false)};
  Value images = image_input(c);
  if (legacy) images = convert(images, c.policy.compute);
  DType dtype = images.dtype();
  bool crop = c.config.flag("crop_to_aspect_ratio", false), padded = c.config.flag("pad_to_aspect_ratio", false);
  if (crop && padded) c.config.invalid("crops or pads to an aspect ratio, not both");
  if (crop) images = crop_to_aspect_ratio(images, options.height, options.width, first);
  if (padded) {
    if (c.config.text("fill_mode", "constant") != "constant")
      c.config.invalid("'fill_mode' is constant; got '{}'", c.config.text("fill_mode"));
    if (!is_float(dtype)) images = convert(images, DType::f32);
    images = pad_to_aspect_ratio(images, options.height, options.width, c.config.number("fill_value", 0), first);
  }
  return rounded_to(resample(images, options, first), dtype);
}

Value smart_resize(Value images, int64_t height, int64_t width, bool channels_first) {
  return resample(crop_to_aspect_ratio(images, height, width, channels_first), {height, width}, channels_first);
}

Outputs center_crop(Call& c) {
  bool first = c.config.channels_first();
  int64_t height = c.config.integer("height"), width = c.config.integer("width");
  Value images = convert(image_input(c), c.policy.compute);
  ImageAxes axes = image_axes(images, first);
  int64_t h = images.extent(axes.height), w = images.extent(axes.width);
  if (height < 1 || width < 1) c.config.invalid("crops to at least 1 x 1; got {} x {}", height, width);
  if (h < height || w < width) return smart_resize(images, height, width, first);
  int64_t top = (h - height) / 2, left = (w - width) / 2;
  return slice_axis(slice_axis(images, axes.height, top, top + height), axes.width, left, left + width);
}

// A part of all images of a batch, drawn. Nothing at inference, but in Keras 2: there it resizes.
Outputs random_crop(Call& c) {
  if (c.draws()) {
    const bool first = c.config.channels_first();
    const int64_t height = c.config.positive("height"), width = c.config.positive("width");
    Value x = convert(image_input(c), c.policy.compute);
    const ImageAxes axes = image_axes(x, first);
    const int64_t down = x.extent(axes.height) - height, across = x.extent(axes.width) - width;
    if (down <= 0 || across <= 0) return smart_resize(x, height, width, first);
    const auto cut = [&](Value images, int64_t axis, int64_t size, int64_t room) {
      const Value begin = convert(floor(c.uniform({1}, false) * static_cast<double>(room + 1)), DType::i32);
      return take(images, iota(c.graph, {DType::i32, {size}}, 0) + begin, axis);
    };
    return cut(cut(x, axes.height, height, down), axes.width, width, across);
  }
  const Value images = image_input(c);
  if (c.lowering.keras_major != 2) return c.uncast_x();
  return smart_resize(convert(images, c.policy.compute), c.config.integer("height"), c.config.integer("width"), c.config.channels_first());
}

}  // namespace

Rows resizing_layers() {
  static const LayerRow rows[] = {
      {"Resizing", resizing, Masking::drop,
       "height width interpolation crop_to_aspect_ratio pad_to_aspect_ratio fill_mode fill_value antialias data_format bounding_box_format",
       "bicubic as JAX computes it, 1e-3 off TensorFlow"},
      {"CenterCrop", center_crop, Masking::drop, "height width data_format bounding_box_format"},
      {"RandomCrop", random_crop, Masking::drop, "height width data_format bounding_box_format"},
  };
  return rows;
}

}  // namespace tutti::keras
