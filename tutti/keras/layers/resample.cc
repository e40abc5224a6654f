#include "tutti/keras/layers/resample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/layer.h"

namespace tutti::keras {

namespace {

constexpr int64_t most_weights = int64_t{1} << 25;  // of one axis: input x output positions
constexpr int64_t largest_side = int64_t{1} << 24;

using ResampleKernel = double (*)(double distance);

double triangle(double x) { return std::max(0.0, 1 - x); }

// Keys' cubic convolution with a = -0.5.
double cubic(double x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : (1.5 * x - 2.5) * x * x + 1;
}

template <int radius>
double lanczos(double x) {
  if (x > radius) return 0;
  if (x <= 1e-3) return 1;
  double angle = std::numbers::pi * x;
  return radius * std::sin(angle) * std::sin(angle / radius) / (angle * angle);
}

ResampleKernel kernel_of(const std::string& interpolation) {
  if (interpolation == "bilinear") return triangle;
  if (interpolation == "bicubic") return cubic;
  if (interpolation == "lanczos3") return lanczos<3>;
  if (interpolation == "lanczos5") return lanczos<5>;
  fail<InvalidArgument>("keras", "'interpolation' is nearest, bilinear, bicubic, lanczos3, lanczos5 or area; got '{}'", interpolation);
}

// Between the positions of two neighbours, in float32 as TensorFlow and JAX compute it.
float step_between(int64_t from, int64_t to, Aligned aligned) {
  if (aligned == Aligned::corners && to > 1) return static_cast<float>(from - 1) / static_cast<float>(to - 1);
  return static_cast<float>(from) / static_cast<float>(to);
}

// [from, to]: how much of each input position is in each output position.
std::vector<float> weights(int64_t from, int64_t to, const Resample& options) {
  bool area = options.interpolation == "area";
  ResampleKernel kernel = area ? nullptr : kernel_of(options.interpolation);
  double step = static_cast<double>(from) / static_cast<double>(to);
  double width = options.antialias ? std::max(step, 1.0) : 1.0;
  std::vector<float> out(static_cast<size_t>(from * to));
  std::vector<double> column(static_cast<size_t>(from));
  for (int64_t k = 0; k < to; ++k) {
    double start = static_cast<double>(k) * step, centre = (static_cast<double>(k) + 0.5) * step - 0.5, total = 0;
    if (options.aligned != Aligned::borders) centre = static_cast<float>(k) * step_between(from, to, options.aligned);
    for (int64_t i = 0; i < from; ++i) {
      auto position = static_cast<double>(i);
      double weight = area ? std::max(0.0, std::min(start + step, position + 1) - std::max(start, position))
                           : kernel(std::abs(centre - position) / width);
      column[static_cast<size_t>(i)] = weight;
      total += weight;
    }
    for (int64_t i = 0; i < from && std::abs(total) > 1e-4; ++i)
      out[static_cast<size_t>(i * to + k)] = static_cast<float>(column[static_cast<size_t>(i)] / total);
  }
  return out;
}

// JAX computes these positions in float32.
Ints nearest_positions(int64_t from, int64_t to, Aligned aligned) {
  Ints out;
  for (int64_t k = 0; k < to; ++k) {
    float position = (static_cast<float>(k) + 0.5f) * static_cast<float>(from) / static_cast<float>(to);
    if (aligned != Aligned::borders) position = static_cast<float>(k) * step_between(from, to, aligned);
    if (aligned == Aligned::corners) position = std::round(position);
    out.push_back(std::min(static_cast<int64_t>(std::floor(position)), from - 1));
  }
  return out;
}

Value resample_axis(Value x, int64_t axis, int64_t to, const Resample& options) {
  int64_t from = x.extent(axis);
  if (from == to) return x;
  if (from < 1 || to < 1 || std::max(from, to) > largest_side || from * to > most_weights)
    fail<InvalidArgument>("keras", "cannot resize {} to {} along axis {}", to_string(x.shape()), to, axis);
  if (options.interpolation == "nearest") return take(x, nearest_positions(from, to, options.aligned), axis);
  Value matrix = convert(constant<float>(x.graph(), {from, to}, weights(from, to, options)), x.dtype());
  return moveaxis(dot_general(x, matrix, {{}, {}, {axis}, {0}}), {-1}, {axis});
}

void require_size(int64_t height, int64_t width) {
  if (std::min(height, width) < 1 || std::max(height, width) > largest_side)
    fail<InvalidArgument>("keras", "images have a height and a width between 1 and {}; got {} x {}", largest_side, height, width);
}

// One side of a rectangle with the proportions side : other, given the other's length.
int64_t in_proportion(int64_t length, int64_t side, int64_t other) {
  return static_cast<int64_t>(static_cast<double>(length * side) / static_cast<double>(other));
}

}  // namespace

Value image_input(const Call& c) {
  if (!c.arguments.positional.empty() && c.arguments.positional[0].kind == Argument::Kind::object)
    c.config.unsupported("dictionaries of images, boxes and labels; hint: call it with the images alone");
  return c.x();
}

ImageAxes image_axes(Value images, bool channels_first) {
  if (images.rank() != 3 && images.rank() != 4)
    fail<InvalidArgument>("keras", "images have rank 3 or 4; got {}", to_string(images.shape()));
  int64_t height = images.rank() - (channels_first ? 2 : 3);
  require_size(images.extent(height), images.extent(height + 1));
  return {height, height + 1};
}

Value resample(Value images, const Resample& options, bool channels_first) {
  require_size(options.height, options.width);
  ImageAxes axes = image_axes(images, channels_first);
  if (options.interpolation != "nearest") {
    if (options.interpolation != "area") kernel_of(options.interpolation);
    if (!is_float(images.dtype())) images = convert(images, DType::f32);
  }
  return resample_axis(resample_axis(images, axes.height, options.height, options), axes.width, options.width, options);
}

Value rounded_to(Value x, DType dtype) {
  if (x.dtype() == dtype || !is_integer(dtype)) return convert(x, dtype);
  auto [low, high] = dispatch(dtype, [](auto zero) {
    using T = decltype(zero);
    return std::pair(static_cast<double>(std::numeric_limits<T>::lowest()), static_cast<double>(std::numeric_limits<T>::max()));
  });
  return convert(clamp(unary(Op::round_nearest_even, x), low, high), dtype);
}

Value crop_to_aspect_ratio(Value images, int64_t height, int64_t width, bool channels_first) {
  require_size(height, width);
  ImageAxes axes = image_axes(images, channels_first);
  int64_t h = images.extent(axes.height), w = images.extent(axes.width);
  int64_t crop_h = std::max<int64_t>(std::min(h, in_proportion(w, height, width)), 1);
  int64_t crop_w = std::max<int64_t>(std::min(w, in_proportion(h, width, height)), 1);
  int64_t top = (h - crop_h) / 2, left = (w - crop_w) / 2;
  return slice_axis(slice_axis(images, axes.height, top, top + crop_h), axes.width, left, left + crop_w);
}

Value pad_to_aspect_ratio(Value images, int64_t height, int64_t width, double value, bool channels_first) {
  require_size(height, width);
  ImageAxes axes = image_axes(images, channels_first);
  int64_t h = images.extent(axes.height), w = images.extent(axes.width);
  int64_t top = (std::max(h, in_proportion(w, height, width)) - h) / 2, left = (std::max(w, in_proportion(h, width, height)) - w) / 2;
  Ints border(static_cast<size_t>(images.rank()), 0);
  if (top > 0) {
    border[static_cast<size_t>(axes.height)] = top;
  } else {
    border[static_cast<size_t>(axes.width)] = left;
  }
  return pad(images, value, border, border);
}

}  // namespace tutti::keras
