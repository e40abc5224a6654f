// keras.ops.image: sizes, colours, filters, and sampling at other places.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/colors.h"
#include "tutti/keras/layers/operations/rows.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/layers/windows.h"

namespace tutti::keras {

namespace {

// Images as a batch with the channels last: [n, h, w, c].
struct Images {
  Value x;
  bool channels_first, single;
};

Images read_images(Call& c, size_t position = 0, std::string_view name = "images") {
  Value x = operand(c, position, name).value();
  if (x.rank() != 3 && x.rank() != 4) c.config.invalid("'{}' is an image or a batch of them; got {}", name, to_string(x.type()));
  bool single = x.rank() == 3, first = c.config.channels_first();
  if (single) x = expand_dims(x, {0});
  return {to_channels_last(x, first), first, single};
}

Value as_given(const Images& like, Value x) {
  x = from_channels_last(x, like.channels_first);
  return like.single ? squeeze(x, {0}) : x;
}

Outputs resize(Call& c) {
  Value images = array(c, "images");
  bool first = c.config.channels_first(), crop = c.config.flag("crop_to_aspect_ratio", false),
       padded = c.config.flag("pad_to_aspect_ratio", false);
  Ints size = c.config.ints("size", 2);
  DType dtype = images.dtype();
  if (crop && padded) c.config.invalid("crops or pads to an aspect ratio, not both");
  if (crop) images = crop_to_aspect_ratio(images, size[0], size[1], first);
  if (padded) {
    if (c.config.text("fill_mode", "constant") != "constant")
      c.config.unsupported("'fill_mode' is constant; got '{}'", c.config.text("fill_mode"));
    if (!is_float(dtype)) images = convert(images, DType::f32);
    images = pad_to_aspect_ratio(images, size[0], size[1], c.config.number("fill_value", 0), first);
  }
  return rounded_to(
      resample(images, {size[0], size[1], c.config.text("interpolation", "bilinear"), c.config.flag("antialias", false)}, first), dtype);
}

// One side's low border, size and high border, of which the file gives two or three; sizes add up to `whole` of the larger image.
struct Side {
  int64_t low, high;
};
Side read_side(const Config& config, std::string_view low_key, std::string_view high_key, std::string_view target_key, int64_t difference) {
  bool has_low = config.has(low_key), has_high = config.has(high_key);
  if (!has_low && !has_high) config.invalid("needs '{}' or '{}'", low_key, high_key);
  if ((!has_low || !has_high) && !config.has(target_key)) config.invalid("needs '{}'", target_key);
  int64_t low = has_low ? config.integer(low_key) : 0, high = has_high ? config.integer(high_key) : 0;
  constexpr int64_t most = int64_t{1} << 30;
  if (std::max(low, high) > most || difference > most || difference < -most) config.invalid("borders are at most {}", most);
  if (!has_low) low = difference - high;
  if (!has_high) high = difference - low;
  if (low < 0 || high < 0) config.invalid("'{}' and '{}' are not negative; got {} and {}", low_key, high_key, low, high);
  return {low, high};
}

struct Borders {
  Value x;
  ImageAxes axes;
  Side vertical, horizontal;
};
Borders read_borders(Call& c, const std::string& what, int64_t direction) {
  Value x = array(c, "images");
  ImageAxes axes = image_axes(x, c.config.channels_first());
  auto side = [&](const char* low, const char* high, const char* target, int64_t axis) {
    int64_t size = std::clamp<int64_t>(c.config.integer(target, 0), -1, int64_t{1} << 30);
    return read_side(c.config, low + what, high + what, target, direction * (size - x.extent(axis)));
  };
  return {x, axes, side("top_", "bottom_", "target_height", axes.height), side("left_", "right_", "target_width", axes.width)};
}

Outputs pad_images(Call& c) {
  Borders b = read_borders(c, "padding", 1);
  Ints low(static_cast<size_t>(b.x.rank()), 0), high = low;
  low[static_cast<size_t>(b.axes.height)] = b.vertical.low;
  high[static_cast<size_t>(b.axes.height)] = b.vertical.high;
  low[static_cast<size_t>(b.axes.width)] = b.horizontal.low;
  high[static_cast<size_t>(b.axes.width)] = b.horizontal.high;
  return pad(b.x, 0.0, low, high);
}

Outputs crop_images(Call& c) {
  Borders b = read_borders(c, "cropping", -1);
  int64_t height = b.x.extent(b.axes.height) - b.vertical.low - b.vertical.high;
  int64_t width = b.x.extent(b.axes.width) - b.horizontal.low - b.horizontal.high;
  if (height < 0 || width < 0) c.config.invalid("crops more than {} has", to_string(b.x.type()));
  Value rows = slice_axis(b.x, b.axes.height, b.vertical.low, b.vertical.low + height);
  return slice_axis(rows, b.axes.width, b.horizontal.low, b.horizontal.low + width);
}

Outputs rgb_to_grayscale(Call& c) {
  Images images = read_images(c);
  if (images.x.extent(3) == 1) return as_given(images, images.x);
  if (images.x.extent(3) != 3) c.config.invalid("takes 1 or 3 channels; got {}", to_string(images.x.type()));
  return as_given(images, rgb_to_gray(images.x));
}

template <Value (*change)(Value)>
Outputs colours(Call& c) {
  Images images = read_images(c);
  if (!is_float(images.x.dtype()) || images.x.extent(3) != 3)
    c.config.invalid("takes three channels of floats; got {}", to_string(images.x.type()));
  return as_given(images, change(images.x));
}

// The same window for each channel on its own.
Value filtered(Value x, const std::vector<float>& window, int64_t height, int64_t width, const std::string& padding) {
  Value kernel = convert(constant<float>(x.graph(), {height, width, 1, 1}, window), x.dtype());
  return convolve_depthwise(x, broadcast_to(kernel, {height, width, x.extent(3), 1}), {{1, 1}, {}, padding, false});
}

std::vector<double> bell(const Config& config, int64_t size, double sigma) {
  if (size < 1 || size > 1024 || !(sigma > 0)) config.invalid("a window of {} with deviation {} is out of range", size, sigma);
  std::vector<double> out;
  double total = 0;
  for (int64_t i = 0; i < size; ++i) {
    double distance = static_cast<double>(i) - static_cast<double>(size - 1) / 2;
    out.push_back(std::exp(-0.5 * distance * distance / (sigma * sigma)));
    total += out.back();
  }
  for (double& value : out) value /= total;
  return out;
}

std::vector<float> outer(const std::vector<double>& rows, const std::vector<double>& columns) {
  std::vector<float> out;
  for (double r : rows)
    for (double column : columns) out.push_back(static_cast<float>(r * column));
  return out;
}

Outputs gaussian_blur(Call& c) {
  Images images = read_images(c);
  if (!is_float(images.x.dtype())) c.config.invalid("takes floats; got {}", to_string(images.x.type()));
  Ints size = c.config.ints("kernel_size", 2, {3, 3});
  std::vector<double> sigma = c.config.has("sigma") ? c.config.numbers("sigma") : std::vector<double>{1, 1};
  if (sigma.size() != 2) c.config.invalid("'sigma' is two numbers");
  // Both are given as (x, y).
  auto window = outer(bell(c.config, size[1], sigma[1]), bell(c.config, size[0], sigma[0]));
  return as_given(images, filtered(images.x, window, size[1], size[0], "same"));
}

Outputs sobel_edges(Call& c) {
  Images images = read_images(c);
  if (images.single) c.config.invalid("takes a batch of images");
  Value dx = filtered(images.x, {-1, 0, 1, -2, 0, 2, -1, 0, 1}, 3, 3, "same");
  Value dy = filtered(images.x, {-1, -2, -1, 0, 0, 0, 1, 2, 1}, 3, 3, "same");
  return stack({as_given(images, dy), as_given(images, dx)}, -1);
}

Outputs ssim(Call& c) {
  Images first = read_images(c, 0, "image1"), second = read_images(c, 1, "image2");
  DType given = first.x.dtype(), dtype = float_type(given);
  Value a = convert(first.x, dtype), b = convert(second.x, dtype);
  int64_t size = c.config.integer("filter_size", 11);
  auto curve = bell(c.config, size, c.config.number("filter_sigma", 1.5));
  auto window = outer(curve, curve);
  auto blurred = [&](Value x) { return filtered(x, window, size, size, "valid"); };
  double range = c.config.number("max_val", 1), c1 = std::pow(c.config.number("k1", 0.01) * range, 2),
         c2 = std::pow(c.config.number("k2", 0.03) * range, 2);
  Value mean_a = blurred(a), mean_b = blurred(b), both = mean_a * mean_b, squares = mean_a * mean_a + mean_b * mean_b;
  Value variances = blurred(a * a) + blurred(b * b) - squares, covariance = blurred(a * b) - both;
  Value map = (both * 2.0 + c1) * (covariance * 2.0 + c2) / ((squares + c1) * (variances + c2));
  Value out = convert(mean(mean(map, {1, 2}), {1}), given);
  return first.single ? squeeze(out, {0}) : out;
}

enum class Fill { constant, nearest, wrap, mirror, reflect };

Fill read_fill(const Config& config, const char* otherwise = "constant") {
  std::string mode = config.text("fill_mode", otherwise);
  for (auto [name, fill] : {std::pair("constant", Fill::constant), std::pair("nearest", Fill::nearest), std::pair("wrap", Fill::wrap),
                            std::pair("mirror", Fill::mirror), std::pair("reflect", Fill::reflect)})
    if (mode == name) return fill;
  config.invalid("'fill_mode' is constant, nearest, wrap, mirror or reflect; got '{}'", mode);
}

// The remainder that has the divisor's sign.
Value modulo(Value x, int64_t n) {
  Value extent = full_like(x, static_cast<double>(n)), rest = remainder(x, extent);
  return select(compare(rest, 0, Direction::LT), rest + extent, rest);
}

// |triangle wave| of an index: 0 1 .. n-1 n-2 .. 1 0 1 ..
Value mirrored(Value index, int64_t n) {
  if (n < 2) return full_like(index, 0);
  return abs(modulo(index + static_cast<double>(n - 1), 2 * (n - 1)) - static_cast<double>(n - 1));
}

Value brought_inside(Value index, int64_t n, Fill fill) {
  switch (fill) {
    case Fill::wrap: return modulo(index, n);
    case Fill::mirror: return mirrored(index, n);
    case Fill::reflect: return (mirrored(index * 2.0 + 1, 2 * n + 1) - 1) / 2.0;
    case Fill::nearest:
    case Fill::constant: break;
  }
  return clamp(index, 0, static_cast<double>(n - 1));
}

struct Sampling {
  bool linear;
  Fill fill;
  double value;
};

// x at places between its elements. `places` holds one tensor an axis of x, all of one shape, in elements; axes without one stand for
// themselves through `fixed`, the part of the flat index that needs no interpolation.
Value sample(const Config& config, Value x, const std::vector<std::pair<int64_t, Value>>& places, Value fixed, const Sampling& how) {
  if (x.shape().elements() < 1 || x.shape().elements() > std::numeric_limits<int32_t>::max())
    config.unsupported("sampling {} is not done", to_string(x.type()));
  if (places.size() > 6) config.unsupported("sampling along {} axes is not done", places.size());
  DType precise = float_type(x.dtype());
  Ints strides = x.shape().strides();
  Value flat = convert(flatten(x), precise), total;
  struct Neighbour {
    Value offset, valid, weight;
  };
  std::vector<std::vector<Neighbour>> choices;
  for (auto [axis, place] : places) {
    int64_t n = x.extent(axis);
    auto stride = static_cast<double>(strides[static_cast<size_t>(axis)]);
    auto neighbour = [&](Value index, Value weight) {
      Value inside = logical_and(compare(index, 0, Direction::GE), compare(index, static_cast<double>(n), Direction::LT));
      return Neighbour{brought_inside(index, n, how.fill) * stride, inside, weight};
    };
    if (how.linear) {
      Value below = floor(place), share = convert(place - below, precise), index = convert(below, DType::i32);
      choices.push_back({neighbour(index, 1.0 - share), neighbour(index + 1, share)});
    } else {
      choices.push_back(
          {neighbour(convert(unary(Op::round_nearest_afz, place), DType::i32), full(x.graph(), {precise, place.shape()}, 1))});
    }
  }
  size_t corners = size_t{1} << (how.linear ? choices.size() : 0);
  for (size_t corner = 0; corner < corners; ++corner) {
    Value offset = fixed, valid, weight;
    for (size_t i = 0; i < choices.size(); ++i) {
      const Neighbour& one = choices[i][(corner >> i) & 1];
      offset = offset ? offset + one.offset : one.offset;
      valid = valid ? logical_and(valid, one.valid) : one.valid;
      weight = weight ? weight * one.weight : one.weight;
    }
    Value found = take(flat, offset, 0);
    if (how.fill == Fill::constant) found = select(valid, found, full_like(found, how.value));
    total = total ? total + found * weight : found * weight;
  }
  return is_float(x.dtype()) ? total : convert(unary(Op::round_nearest_afz, total), x.dtype());
}

Outputs map_coordinates(Call& c) {
  Value x = array(c, "inputs");
  // Coordinates are one tensor, or a list with one an axis.
  auto each = operand_list(c, 1, "coordinates");
  if (static_cast<int64_t>(each.size()) != x.rank())
    c.config.invalid("'coordinates' has {} entries for {}", each.size(), to_string(x.type()));
  int64_t order = c.config.integer("order");
  if (order != 0 && order != 1) c.config.invalid("'order' is 0 or 1; got {}", order);
  std::vector<std::pair<int64_t, Value>> places;
  for (size_t i = 0; i < each.size(); ++i) {
    Value place = each[i].value();
    places.emplace_back(static_cast<int64_t>(i), convert(place, float_type(place.dtype())));
  }
  return sample(c.config, x, places, {}, {order == 1, read_fill(c.config), c.config.number("fill_value", 0)});
}

Outputs affine_transform(Call& c) {
  Images images = read_images(c);
  Value transform = operand(c, 1, "transform").value();
  transform = convert(transform, float_type(transform.dtype()));
  if (transform.rank() == 1) transform = expand_dims(transform, {0});
  return as_given(images, affine_transformed(c.config, images.x, transform, "constant"));
}

}  // namespace

namespace {

// Each pixel of images [n, h, w, c] from its place, by the config's interpolation, fill_mode (or this one) and fill_value.
Value sampled(const Config& config, Value x, Value y, Value across, const char* fill_mode) {
  std::string interpolation = config.text("interpolation", "bilinear");
  if (interpolation != "bilinear" && interpolation != "nearest")
    config.invalid("'interpolation' is nearest or bilinear; got '{}'", interpolation);
  Type counts{DType::i32, x.shape()};
  Value fixed = iota(x.graph(), counts, 0) * static_cast<double>(x.shape().strides()[0]) + iota(x.graph(), counts, 3);
  return sample(config, x, {{1, y}, {2, across}}, fixed,
                {interpolation == "bilinear", read_fill(config, fill_mode), config.number("fill_value", 0)});
}

enum class Map { affine, projective };

Value transformed(const Config& config, Value x, Value transform, Map map, const char* fill_mode) {
  if (transform.rank() != 2 || transform.extent(1) != 8 || (transform.extent(0) != 1 && transform.extent(0) != x.extent(0)))
    config.invalid("'transform' has eight numbers an image; got {}", to_string(transform.type()));
  Type places{transform.dtype(), x.shape()};
  auto factor = [&](int64_t i) { return reshape(index_axis(transform, 1, i), {transform.extent(0), 1, 1, 1}); };
  Graph& graph = x.graph();
  Value row = iota(graph, places, 1), column = iota(graph, places, 2);
  Value y = row * factor(4) + column * factor(3), across = row * factor(1) + column * factor(0);
  if (map == Map::affine) {
    const Value channel = iota(graph, places, 3);
    y = y + channel * factor(6) + factor(5);
    across = across + channel * factor(7) + factor(2);
  } else {
    const Value depth = column * factor(6) + row * factor(7) + 1.0;
    y = (y + factor(5)) / depth;
    across = (across + factor(2)) / depth;
  }
  return sampled(config, x, y, across, fill_mode);
}

}  // namespace

Value affine_transformed(const Config& config, Value x, Value transform, const char* fill_mode) {
  return transformed(config, x, transform, Map::affine, fill_mode);
}

Value projectively_transformed(const Config& config, Value x, Value transform) {
  return transformed(config, x, transform, Map::projective, "constant");
}

Value displaced(const Config& config, Value x, Value down, Value across, const char* fill_mode) {
  const auto place = [&](Value by, int64_t axis) { return iota(x.graph(), {by.dtype(), x.shape()}, axis) + broadcast_to(by, x.shape()); };
  return sampled(config, x, place(down, 1), place(across, 2), fill_mode);
}

Rows image_operations() {
  static const LayerRow rows[] = {
      operation("AffineTransform", affine_transform, "interpolation fill_mode fill_value data_format"),
      operation("CropImages", crop_images,
                "top_cropping left_cropping bottom_cropping right_cropping target_height target_width data_format"),
      operation("GaussianBlur", gaussian_blur, "kernel_size sigma data_format",
                "as JAX computes it; TensorFlow turns a kernel that is not square"),
      operation("HSVToRGB", colours<hsv_to_rgb>, "data_format"),
      operation("MapCoordinates", map_coordinates, "order fill_mode fill_value"),
      operation("PadImages", pad_images, "top_padding left_padding bottom_padding right_padding target_height target_width data_format"),
      refused("PerspectiveTransform", "it solves equations for its points; hint: affine_transform is done"),
      operation("RGBToGrayscale", rgb_to_grayscale, "data_format"),
      operation("RGBToHSV", colours<rgb_to_hsv>, "data_format"),
      operation("Resize", resize, "size interpolation antialias crop_to_aspect_ratio pad_to_aspect_ratio fill_mode fill_value data_format"),
      operation("SSIM", ssim, "max_val filter_size filter_sigma k1 k2 data_format"),
      refused("ScaleAndTranslate", "sampling with scales from the data is not done; hint: resize is"),
      operation("SobelEdges", sobel_edges, "data_format", "zeros beyond the border, as on JAX; TensorFlow reflects it"),
  };
  return rows;
}

}  // namespace tutti::keras
