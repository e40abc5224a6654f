// tf.image.
#include <algorithm>
#include <cmath>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/colors.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/layers/tensorflow/arguments.h"
#include "tutti/keras/layers/windows.h"

namespace tutti::keras::tf {

namespace {

// "size", by [height, width] of the images at most if their proportions stay.
Ints wanted_size(Call& c, Value x) {
  Ints size = integers(c, argument(c, "size"));
  if (size.size() != 2) c.config.invalid("'size' is [height, width]; got {}", to_string(size));
  if (!flag(c, "preserve_aspect_ratio", false)) return size;
  const ImageAxes sides = image_axes(x, false);
  // As TensorFlow computes it, in float32.
  const auto height = static_cast<float>(x.extent(sides.height)), width = static_cast<float>(x.extent(sides.width));
  const float scale = std::min(static_cast<float>(size[0]) / height, static_cast<float>(size[1]) / width);
  return {static_cast<int64_t>(std::nearbyint(scale * height)), static_cast<int64_t>(std::nearbyint(scale * width))};
}
// images, size, method, preserve_aspect_ratio, antialias
Outputs resize(Call& c) {
  Value x = tensor(c);
  const Ints size = wanted_size(c, x);
  return resample(x, {size[0], size[1], text(c, "method", "bilinear"), flag(c, "antialias", false)}, false);
}

// images, size, align_corners, half_pixel_centers
Outputs resize_of_version_1(Call& c, const std::string& method) {
  Value x = images(c);
  const Ints size = wanted_size(c, x);
  const bool corners = flag(c, "align_corners", false), centres = flag(c, "half_pixel_centers", false);
  if (corners && centres) c.config.invalid("'align_corners' and 'half_pixel_centers' exclude each other");
  const bool by_area = method == "area" && !corners;
  if (method != "bilinear" && method != "nearest" && !by_area)
    c.config.unsupported("resizing of TensorFlow 1 by '{}'{}; hint: tf.image.resize is read", method, corners ? " with align_corners" : "");
  return resample(x,
                  {size[0], size[1], method, false,
                   corners              ? Aligned::corners
                   : centres || by_area ? Aligned::borders
                                        : Aligned::first},
                  false);
}
Outputs resize_bilinear(Call& c) { return resize_of_version_1(c, "bilinear"); }
Outputs resize_nearest(Call& c) { return resize_of_version_1(c, "nearest"); }
// images, size, method (a word or its number), align_corners, preserve_aspect_ratio
Outputs resize_images(Call& c) {
  constexpr const char* methods[] = {"bilinear", "nearest", "bicubic", "area"};
  const Argument* given = find(c, "method");
  if (given != nullptr && given->constant.is_string()) return resize_of_version_1(c, text(c, "method", ""));
  const int64_t method = integer(c, "method", 0);
  if (method < 0 || method > 3) c.config.invalid("'method' is a number from 0 to 3; got {}", method);
  return resize_of_version_1(c, methods[method]);
}

// Part of images: `height` by `width` pixels from (`top`, `left`) on.
Value cut(Call& c, Value x, int64_t top, int64_t left, int64_t height, int64_t width) {
  auto fits = [](int64_t start, int64_t size, int64_t extent) {
    return start >= 0 && size > 0 && start <= extent && size <= extent - start;
  };
  if (!fits(top, height, x.extent(1)) || !fits(left, width, x.extent(2)))
    c.config.invalid("{} by {} pixels from ({}, {}) on are outside of {}", height, width, top, left, to_string(x.shape()));
  return slice_axis(slice_axis(x, 1, top, top + height), 2, left, left + width);
}
// images, offset_height, offset_width, target_height, target_width
Outputs crop_to_bounding_box(Call& c) {
  Value x = images(c);
  return cut(c, x, integer(c, "offset_height"), integer(c, "offset_width"), integer(c, "target_height"), integer(c, "target_width"));
}
Outputs pad_to_bounding_box(Call& c) {
  Value x = images(c);
  const int64_t top = integer(c, "offset_height"), left = integer(c, "offset_width"), height = integer(c, "target_height"),
                width = integer(c, "target_width");
  constexpr int64_t most = 1 << 16;
  if (top < 0 || left < 0 || height > most || width > most || height - top < x.extent(1) || width - left < x.extent(2))
    c.config.invalid("{} does not fit into {} by {} pixels from ({}, {}) on", to_string(x.shape()), height, width, top, left);
  return pad(x, PadMode::constant, {0, top, left, 0}, {0, height - top - x.extent(1), width - left - x.extent(2), 0});
}
// images, target_height, target_width: of both sides alike, the odd pixel at the end
Outputs resize_with_crop_or_pad(Call& c) {
  Value x = images(c);
  const Ints target{integer(c, "target_height"), integer(c, "target_width")};
  Ints low(4, 0), high(4, 0), start(2, 0), kept(2);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = x.extent(static_cast<int64_t>(i) + 1);
    if (target[i] < 1 || target[i] > 1 << 16)
      c.config.invalid("images have from 1 to {} pixels a side; got {}", 1 << 16, to_string(target));
    kept[i] = std::min(extent, target[i]);
    start[i] = (extent - kept[i]) / 2;
    low[i + 1] = (target[i] - kept[i]) / 2;
    high[i + 1] = target[i] - kept[i] - low[i + 1];
  }
  return pad(cut(c, x, start[0], start[1], kept[0], kept[1]), PadMode::constant, low, high);
}
// image, target_height, target_width, method, antialias: the whole image as large as fits, zeros on two sides
Outputs resize_with_pad(Call& c) {
  Value x = images(c);
  const int64_t height = integer(c, "target_height"), width = integer(c, "target_width");
  constexpr int64_t most = 1 << 16;
  if (height < 1 || height > most || width < 1 || width > most)
    c.config.invalid("images have from 1 to {} pixels a side; got {} x {}", most, height, width);
  // As TensorFlow computes it, in float32.
  const auto from_height = static_cast<float>(x.extent(1)), from_width = static_cast<float>(x.extent(2));
  const auto to_height = static_cast<float>(height), to_width = static_cast<float>(width);
  const float ratio = std::max(from_width / to_width, from_height / to_height);
  const float inner_height = from_height / ratio, inner_width = from_width / ratio;
  const int64_t rows = static_cast<int64_t>(std::floor(inner_height)), columns = static_cast<int64_t>(std::floor(inner_width));
  const int64_t top = std::max<int64_t>(0, static_cast<int64_t>(std::floor((to_height - inner_height) / 2)));
  const int64_t left = std::max<int64_t>(0, static_cast<int64_t>(std::floor((to_width - inner_width) / 2)));
  Value inner = resample(x, {rows, columns, text(c, "method", "bilinear"), flag(c, "antialias", false)}, false);
  return pad(inner, PadMode::constant, {0, top, left, 0}, {0, height - rows - top, width - columns - left, 0});
}
// images, central_fraction
Outputs central_crop(Call& c) {
  Value x = images(c);
  const double fraction = number(c, "central_fraction");
  if (!(fraction > 0 && fraction <= 1)) c.config.invalid("'central_fraction' is above 0 and at most 1; got {}", fraction);
  auto margin = [&](int64_t extent) {
    const auto size = static_cast<double>(extent);
    return static_cast<int64_t>((size - size * fraction) / 2);
  };
  const int64_t top = margin(x.extent(1)), left = margin(x.extent(2));
  return cut(c, x, top, left, x.extent(1) - 2 * top, x.extent(2) - 2 * left);
}
Outputs transpose_images(Call& c) { return transpose(images(c), {0, 2, 1, 3}); }
// image, k: quarter turns against the clock
Outputs rotate_images(Call& c) {
  Value x = images(c);
  const int64_t turns = (integer(c, "k", 1) % 4 + 4) % 4;
  if (turns == 1) return transpose(flip(x, {2}), {0, 2, 1, 3});
  if (turns == 3) return flip(transpose(x, {0, 2, 1, 3}), {2});
  return turns == 2 ? flip(x, {1, 2}) : x;
}
// image, dtype: to floats, of whole numbers between 0 and 1
Outputs convert_image_dtype(Call& c) {
  Value x = tensor(c);
  const DType to = dtype(c, "dtype");
  flag(c, "saturate", false);  // of no effect on floats
  if (!is_float(to)) c.config.unsupported("images are converted to floats only; got {}", numpy_name(to));
  if (is_float(x.dtype())) return convert(x, to);
  if (x.dtype() != DType::u8) c.config.unsupported("images of {} are not converted to floats", numpy_name(x.dtype()));
  return convert(x, to) * (1.0 / 255);
}
Value float_images(Call& c) {
  Value x = images(c);
  if (!is_float(x.dtype())) c.config.unsupported("images of integers");
  return x;
}
Outputs hsv_of_rgb(Call& c) { return rgb_to_hsv(float_images(c)); }
Outputs rgb_of_hsv(Call& c) { return hsv_to_rgb(float_images(c)); }
Outputs adjust_brightness(Call& c) { return float_images(c) + number(c, "delta"); }
// image, gamma, gain
Outputs adjust_gamma(Call& c) { return power(float_images(c), number(c, "gamma", 1)) * number(c, "gain", 1); }
Outputs adjust_contrast(Call& c) {
  Value x = float_images(c), middle = mean(x, {1, 2}, true);
  return (x - middle) * number(c, "contrast_factor") + middle;
}

template <int64_t axis_from_end>
Outputs flip_images(Call& c) {
  return flip(tensor(c), {-axis_from_end});
}
Outputs rgb_to_grayscale(Call& c) {
  Value x = tensor(c);
  if (!is_float(x.dtype())) c.config.unsupported("images of integers");
  Value weights = convert(constant<double>(c.graph, {3, 1}, {0.2989, 0.5870, 0.1140}), x.dtype());
  return matmul(x, weights);
}
Outputs grayscale_to_rgb(Call& c) { return repeat(tensor(c), 3, -1); }
Outputs per_image_standardization(Call& c) {
  Value x = tensor(c);
  if (!is_float(x.dtype())) x = convert(x, DType::f32);
  if (x.rank() < 3) c.config.invalid("takes images; got {}", to_string(x.shape()));
  Ints image{x.rank() - 3, x.rank() - 2, x.rank() - 1};
  auto pixels = static_cast<double>(x.extent(-1) * x.extent(-2) * x.extent(-3));
  Value deviation = maximum(sqrt(variance(x, image, true)), pixels > 0 ? 1 / std::sqrt(pixels) : 0.0);
  return (x - mean(x, image, true)) / deviation;
}

// images, sizes, strides, rates, padding -> [n, rows, columns, patch height * patch width * channels]
Outputs extract_patches(Call& c) {
  Value x = images(c);
  Ints size = spatial_sizes(c, "sizes", 2, false), stride = spatial_sizes(c, "strides", 2, false),
       rate = spatial_sizes(c, "rates", 2, false);
  Ints low(4, 0), high(4, 0), rows(2);
  for (size_t i = 0; i < 2; ++i) {
    if (size[i] < 1 || size[i] > 64 || stride[i] < 1 || rate[i] < 1 || rate[i] > 1 << 16)
      c.config.unsupported("patches of {} at strides {} and rates {}", to_string(size), to_string(stride), to_string(rate));
    int64_t extent = x.extent(static_cast<int64_t>(i) + 1), window = (size[i] - 1) * rate[i] + 1;
    if (padding_word(c) == "same") {
      Padding sides = same_padding(extent, window, stride[i]);
      low[i + 1] = sides.low;
      high[i + 1] = sides.high;
    }
    int64_t room = extent + low[i + 1] + high[i + 1] - window;
    rows[i] = room < 0 ? 0 : room / stride[i] + 1;
  }
  x = pad(x, PadMode::constant, low, high);
  std::vector<Value> parts;
  for (int64_t i = 0; i < size[0]; ++i)
    for (int64_t j = 0; j < size[1]; ++j) {
      Value part = slice_axis(x, 1, i * rate[0], i * rate[0] + (rows[0] - 1) * stride[0] + 1, stride[0]);
      parts.push_back(slice_axis(part, 2, j * rate[1], j * rate[1] + (rows[1] - 1) * stride[1] + 1, stride[1]));
    }
  return concatenate(parts, -1);
}

}  // namespace

std::span<const Function> image_functions() {
  static const Function functions[] = {
      {"image.adjust_brightness", adjust_brightness},
      {"image.adjust_contrast", adjust_contrast},
      {"image.adjust_gamma", adjust_gamma},
      {"image.central_crop", central_crop},
      {"image.convert_image_dtype", convert_image_dtype},
      {"image.crop_to_bounding_box", crop_to_bounding_box},
      {"image.extract_patches", extract_patches},
      {"image.flip_left_right", flip_images<2>},
      {"image.flip_up_down", flip_images<3>},
      {"image.grayscale_to_rgb", grayscale_to_rgb},
      {"image.hsv_to_rgb", rgb_of_hsv},
      {"image.pad_to_bounding_box", pad_to_bounding_box},
      {"image.per_image_standardization", per_image_standardization},
      {"image.resize", resize},
      {"image.resize_bilinear", resize_bilinear},
      {"image.resize_images", resize_images},
      {"image.resize_nearest_neighbor", resize_nearest},
      {"image.resize_with_crop_or_pad", resize_with_crop_or_pad},
      {"image.resize_with_pad", resize_with_pad},
      {"image.rgb_to_grayscale", rgb_to_grayscale},
      {"image.rgb_to_hsv", hsv_of_rgb},
      {"image.rot90", rotate_images},
      {"image.transpose", transpose_images},
  };
  return functions;
}

}  // namespace tutti::keras::tf
