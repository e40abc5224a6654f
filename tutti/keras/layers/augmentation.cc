// Image augmentation: nothing happens at inference, but for the layers that are not random. While training the random ones draw as Keras's
// do.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/augmentation.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/histogram_equalization.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/layers/windows.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

// Of Keras 2: each batch gets a size of its own, which no graph of fixed shapes has.
Outputs random_size(Call& c) {
  if (c.draws())
    c.config.unsupported(
        "gives each batch a size that is drawn while training, but shapes are fixed here; hint: RandomZoom keeps the size");
  return convert(image_input(c), c.policy.compute);
}

Outputs unchanged(Call& c) { return plain_images(c); }

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

// Each image mirrored or not; with both directions, in both or in none, as Keras does.
Outputs random_flip(Call& c) {
  Value x = convert(image_input(c), c.policy.compute);
  if (!c.draws()) return x;
  const ImageAxes axes = image_axes(x, c.config.channels_first());
  const std::string mode = c.config.text("mode", "horizontal_and_vertical");
  if (mode != "horizontal" && mode != "vertical" && mode != "horizontal_and_vertical")
    c.config.invalid("'mode' is horizontal, vertical or horizontal_and_vertical; got '{}'", mode);
  const Value flips = broadcast_to(compare(draw_by_image(c, x, {0, 1}), 0.5, Direction::LE), x.shape());
  if (mode != "vertical") x = select(flips, flip(x, {axes.width}), x);
  if (mode != "horizontal") x = select(flips, flip(x, {axes.height}), x);
  return x;
}

// Images as change() makes them of [n, height, width, channels]; where nothing is drawn they stay as they are.
template <class F>
Outputs changed_at_random(Call& c, const F& change) {
  const Value given = convert(image_input(c), c.policy.compute);
  if (!c.draws()) return given;
  const bool first = c.config.channels_first(), single = given.rank() == 3;
  const Value x = single ? expand_dims(given, {0}) : given;
  Value y = change(first ? transpose(x, {0, 2, 3, 1}) : x);
  if (first) y = transpose(y, {0, 3, 1, 2});
  return convert(single ? squeeze(y, {0}) : y, given.dtype());
}

// Images under maps that are drawn: `maps` gives the six numbers of each, [n] or [1], for images of this height and width.
template <class F>
Outputs mapped_at_random(Call& c, const F& maps) {
  return changed_at_random(c, [&](Value x) {
    const Shape each{x.extent(0)};
    std::vector<Value> numbers = maps(each, static_cast<double>(x.extent(1)), static_cast<double>(x.extent(2)));
    numbers.resize(8, full(c.graph, {DType::f32, each}, 0));
    return affine_transformed(c.config, x, stack(numbers, 1), "reflect");
  });
}

Outputs random_zoom(Call& c) {
  return mapped_at_random(c, [&](const Shape& each, double height, double width) {
    const Value down = draw(c, each, factor_of(c.config, "height_factor", -1)) + 1;
    const Value across = c.config.has("width_factor") ? draw(c, each, factor_of(c.config, "width_factor", -1)) + 1 : down;
    const Value zero = full_like(down, 0);
    return std::vector<Value>{across, zero, (1.0 - across) * ((width - 1) / 2), zero, down, (1.0 - down) * ((height - 1) / 2)};
  });
}

// Each corner is moved by a part of its distance from the first one. The map that takes the moved corners back is that of the unit square
// to them, turned around: P. Heckbert, Fundamentals of Texture Mapping and Image Warping, 1989.
Outputs random_perspective(Call& c) {
  return changed_at_random(c, [&](Value x) {
    const double right = static_cast<double>(x.extent(2) - 1), down = static_cast<double>(x.extent(1) - 1);
    const Shape each{x.extent(0)};
    const Value chance = draw(c, each, factor_of(c.config, "factor", 0)), moves = compare(draw(c, each, {0, 1}), chance, Direction::LT);
    const double scale = c.config.number("scale", 1);
    const auto moved = [&](double from) { return (draw(c, each, {-0.5 * scale, 0.5 * scale}) + 1) * from; };
    // The first corner stays at zero; names of the others: which, then x or y.
    const Value right_x = moved(right), down_y = moved(down), far_x = moved(right), far_y = moved(down);
    const Value below_x = right_x - far_x, below_y = -far_y, beside_x = -far_x, beside_y = down_y - far_y;
    const Value sum_x = far_x - right_x, sum_y = far_y - down_y, area = below_x * beside_y - beside_x * below_y;
    const Value g = (sum_x * beside_y - beside_x * sum_y) / area, h = (below_x * sum_y - sum_x * below_y) / area;
    const Value a = right_x * (g + 1), e = down_y * (h + 1), zero = full_like(a, 0);  // unit square to corners: [a 0 0; 0 e 0; g h 1]
    const Value map = stack({right / a, zero, zero, zero, down / e, zero, -(g / a), -(h / e)}, 1);
    const Value y = projectively_transformed(c.config, x, map);
    return select(broadcast_to(reshape(moves, {x.extent(0), 1, 1, 1}), x.shape()), convert(y, x.dtype()), x);
  });
}

// Every pixel is moved by noise that was blurred: so far along both axes, as Keras draws it. One strength for a batch.
Outputs random_elastic_transform(Call& c) {
  return changed_at_random(c, [&](Value x) {
    const Range scale = factor_of(c.config, "scale", 0), factor = factor_of(c.config, "factor", 0), range = value_range(c.config);
    if (scale.high == 0 || factor.high == 0) return x;
    const int64_t height = x.extent(1), width = x.extent(2);
    const double widest = 0.05 * static_cast<double>(std::min(height, width));  // deviation, of the strength 1
    const Value strength = maximum(c.uniform({1}, false) * (scale.high - scale.low) + scale.low, 1e-6), deviation = strength * widest;
    const auto size = static_cast<int64_t>(6 * widest * scale.high) | 1;  // that of the strongest; others reach less far
    const Value bell = drawn_bell(deviation, size, floor(floor(deviation * 6.0) / 2.0));
    const Shape each{x.extent(0), height, width, 1};
    const Value window = reshape(bell, {size, 1, 1, 1}) * reshape(bell, {1, size, 1, 1});
    const Value noise = convolve_depthwise(c.normal(each) * deviation, window, {{1, 1}, {}, "same", false});
    const Value by = noise * strength * (0.1 * static_cast<double>(std::max(height, width)));
    const Value y = convert(displaced(c.config, x, by, by, "reflect"), x.dtype());
    return clamp(select(broadcast_to(drawn_changes(c, x), x.shape()), y, x), range.low, range.high);
  });
}

// What the options say happens in training, so any will do.
constexpr std::string_view random_options = "*";

}  // namespace

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

Outputs random_rotation(Call& c) {
  return mapped_at_random(c, [&](const Shape& each, double height, double width) {
    const Range factor = factor_of(c.config, "factor", -1);
    const Value angle = draw(c, each, {factor.low * 2 * std::numbers::pi, factor.high * 2 * std::numbers::pi});
    const Value cosine = unary(Op::cosine, angle), sine = unary(Op::sine, angle);
    const double x = (width - 1) / 2, y = (height - 1) / 2;
    return std::vector<Value>{cosine, -sine, x - cosine * x + sine * y, sine, cosine, y - sine * x - cosine * y};
  });
}

Outputs random_translation(Call& c) {
  return mapped_at_random(c, [&](const Shape& each, double height, double width) {
    const Value down = draw(c, each, factor_of(c.config, "height_factor", -1)) * height;
    const Value across = draw(c, each, factor_of(c.config, "width_factor", -1)) * width;
    const Value one = full_like(down, 1), zero = full_like(down, 0);
    return std::vector<Value>{one, zero, -across, zero, one, -down};
  });
}

// With the sign that is drawn for both.
Outputs random_shear(Call& c) {
  return mapped_at_random(c, [&](const Shape& each, double, double) {
    const Value sign = drawn_sign(c, each);
    const Value down = draw(c, each, factor_of(c.config, "y_factor", -1)) * sign;
    const Value across = draw(c, each, factor_of(c.config, "x_factor", -1)) * sign;
    const Value one = full_like(down, 1), zero = full_like(down, 0);
    return std::vector<Value>{one, across, zero, down, one, zero};
  });
}

Rows augmentation_layers() {
  static const LayerRow rows[] = {
      {"AugMix", aug_mix, Masking::drop, random_options},
      {"AutoContrast", auto_contrast, Masking::drop, "value_range data_format bounding_box_format"},
      {"ContrastLimitedAdaptiveHistogramEqualization", clahe, Masking::drop,
       "value_range clip_limit tile_grid_size data_format bounding_box_format"},
      {"CutMix", cut_mix, Masking::drop, random_options},
      {"Equalization", unchanged, Masking::drop, random_options, "in models it does nothing, as in Keras"},
      {"MaxNumBoundingBoxes", unchanged, Masking::drop, random_options, "images alone; dictionaries are refused"},
      {"MixUp", mix_up, Masking::drop, random_options},
      {"RandAugment", rand_augment, Masking::drop, random_options},
      {"RandomBrightness", random_brightness, Masking::drop, random_options},
      {"RandomColorDegeneration", random_color_degeneration, Masking::drop, random_options},
      {"RandomColorJitter", random_color_jitter, Masking::drop, random_options},
      {"RandomContrast", random_contrast, Masking::drop, random_options},
      {"RandomElasticTransform", random_elastic_transform, Masking::drop, random_options},
      {"RandomErasing", random_erasing, Masking::drop, random_options},
      {"RandomFlip", random_flip, Masking::drop, random_options},
      {"RandomGaussianBlur", random_gaussian_blur, Masking::drop, random_options},
      {"RandomGrayscale", random_grayscale, Masking::drop, random_options},
      {"RandomHeight", random_size, Masking::drop, random_options, "of Keras 2"},
      {"RandomHue", random_hue, Masking::drop, random_options},
      {"RandomInvert", random_invert, Masking::drop, random_options},
      {"RandomPerspective", random_perspective, Masking::drop, random_options},
      {"RandomPosterization", random_posterization, Masking::drop, random_options},
      {"RandomRotation", random_rotation, Masking::drop, random_options},
      {"RandomSaturation", random_saturation, Masking::drop, random_options},
      {"RandomSharpness", random_sharpness, Masking::drop, random_options},
      {"RandomShear", random_shear, Masking::drop, random_options},
      {"RandomTranslation", random_translation, Masking::drop, random_options},
      {"RandomWidth", random_size, Masking::drop, random_options, "of Keras 2"},
      {"RandomZoom", random_zoom, Masking::drop, random_options},
      {"Solarization", solarization, Masking::drop, random_options},
  };
  return rows;
}

}  // namespace tutti::keras
