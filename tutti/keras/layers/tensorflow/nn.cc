// tf.nn and tf.image.
#include <algorithm>
#include <cmath>

#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/colors.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/layers/tensorflow/arguments.h"
#include "tutti/keras/layers/windows.h"

namespace tutti::keras::tf {

namespace {

template <Value (*f)(Value)>
Outputs activation(Call& c) {
  return f(tensor(c));
}
Value relu_of(Value x) { return relu(x); }
Value elu_of(Value x) { return elu(x); }

Outputs leaky(Call& c) { return leaky_relu(tensor(c), number(c, "alpha", 0.2)); }
Outputs gelu_of(Call& c) { return gelu(tensor(c), flag(c, "approximate", false)); }
Outputs swish(Call& c) {
  Value x = tensor(c);
  return x * logistic(x * number(c, "beta", 1));
}
template <Value (*f)(Value, Ints)>
Outputs along_axis(Call& c) {
  Value x = tensor(c);
  return f(x, {axis(c, x.rank(), "axis", -1)});
}

bool is_channels_first(Call& c) { return text(c, "data_format", "NHWC").starts_with("NC"); }

// value, bias, data_format
Outputs bias_add(Call& c) {
  Value x = tensor(c);
  return x + per_channel(tensor(c, "bias", x.dtype()), x, is_channels_first(c));
}

// input, depth_radius, bias, alpha, beta
Outputs local_response_normalization(Call& c) {
  Value x = tensor(c);
  int64_t radius = integer(c, "depth_radius", 5);
  if (x.rank() != 4 || radius < 0 || radius > 1 << 20) c.config.invalid("takes images and a radius that is not negative");
  Window window{{1, 1, 1, 2 * radius + 1}, {1, 1, 1, 1}, {0, 0, 0, radius}, {0, 0, 0, radius}};
  Value squares = reduce_window(square(x), "add", window);
  return x / power(squares * number(c, "alpha", 1) + number(c, "bias", 1), number(c, "beta", 0.5));
}

// x, mean, variance, offset, scale, variance_epsilon
Outputs batch_normalization(Call& c) {
  Value x = tensor(c);
  Value factor = rsqrt(tensor(c, "variance", x.dtype()) + number(c, "variance_epsilon"));
  if (find(c, "scale") != nullptr) factor = factor * tensor(c, "scale", x.dtype());
  Value out = (x - tensor(c, "mean", x.dtype())) * factor;
  return find(c, "offset") != nullptr ? out + tensor(c, "offset", x.dtype()) : out;
}

Value images(Call& c) {
  Value x = tensor(c);
  if (x.rank() != 4) c.config.invalid("takes a batch of images; got {}", to_string(x.shape()));
  return x;
}

// One entry a spatial axis, from one number, one a spatial axis or one an axis.
Ints spatial_sizes(Call& c, const char* name, int64_t spatial, bool channels_first) {
  Ints given = integers(c, argument(c, name));
  if (given.size() == 1) return Ints(static_cast<size_t>(spatial), given[0]);
  if (static_cast<int64_t>(given.size()) == spatial) return given;
  if (static_cast<int64_t>(given.size()) != spatial + 2) c.config.invalid("'{}' has {} sizes", name, given.size());
  auto first = given.begin() + (channels_first ? 2 : 1);
  return {first, first + spatial};
}

std::string padding(Call& c) {
  std::string given = text(c, "padding", "VALID");
  std::transform(given.begin(), given.end(), given.begin(), [](char letter) { return static_cast<char>(std::tolower(letter)); });
  return given;
}

// `spatial` axes; 0 for as many as the input has.
template <int64_t spatial>
Outputs pooled(Call& c, const std::string& kind) {
  Value x = tensor(c);
  const int64_t axes = spatial > 0 ? spatial : std::clamp<int64_t>(x.rank() - 2, 1, 3);
  if (x.rank() != axes + 2) c.config.invalid("takes inputs of rank {}; got {}", axes + 2, to_string(x.shape()));
  bool first = is_channels_first(c);
  Windows windows{.strides = spatial_sizes(c, "strides", axes, first), .padding = padding(c), .channels_first = first};
  return pool(x, kind, spatial_sizes(c, "ksize", axes, first), windows);
}
template <int64_t spatial>
Outputs max_pool(Call& c) {
  return pooled<spatial>(c, "max");
}
template <int64_t spatial>
Outputs average_pool(Call& c) {
  return pooled<spatial>(c, "average");
}

// The first of several names that an argument has in versions of TensorFlow; the last one when it has none.
const char* given_name(Call& c, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (find(c, name) != nullptr) return name;
  return *(names.end() - 1);
}

// input, filter, strides, padding, rates, data_format
template <Value (*f)(Value, Value, const Windows&)>
Outputs convolved(Call& c) {
  Value x = tensor(c), kernel = tensor(c, given_name(c, {"filter", "filters"}), x.dtype());
  if (x.rank() < 3 || x.rank() > 5 || kernel.rank() != x.rank())
    c.config.invalid("takes an input of rank 3 to 5 and a kernel of the same; got {} and {}", to_string(x.shape()),
                     to_string(kernel.shape()));
  find(c, "use_cudnn_on_gpu");
  const int64_t spatial = x.rank() - 2;
  const bool first = is_channels_first(c);
  auto sizes = [&](std::initializer_list<const char*> names) {
    const char* name = given_name(c, names);
    if (find(c, name) == nullptr) return Ints(static_cast<size_t>(spatial), 1);
    Ints out = spatial_sizes(c, name, spatial, first);
    for (int64_t size : out)
      if (size < 1 || size > 1 << 16) c.config.invalid("'{}' is positive; got {}", name, to_string(out));
    return out;
  };
  return f(x, kernel, {sizes({"strides", "stride"}), sizes({"dilations", "dilation_rate", "rate"}), padding(c), first});
}

int64_t block_size(Call& c) {
  int64_t size = integer(c, "block_size");
  if (size < 1 || size > 1 << 16) c.config.invalid("'block_size' is positive; got {}", size);
  if (is_channels_first(c)) c.config.unsupported("data_format NCHW");
  return size;
}
// [n, h, w, b * b * c] -> [n, h * b, w * b, c]
Outputs depth_to_space(Call& c) {
  Value x = images(c);
  int64_t b = block_size(c), n = x.extent(0), h = x.extent(1), w = x.extent(2), depth = x.extent(3) / (b * b);
  x = transpose(reshape(x, {n, h, w, b, b, depth}), {0, 1, 3, 2, 4, 5});
  return reshape(x, {n, h * b, w * b, depth});
}
Outputs space_to_depth(Call& c) {
  Value x = images(c);
  int64_t b = block_size(c), n = x.extent(0), h = x.extent(1) / b, w = x.extent(2) / b, depth = x.extent(3);
  x = transpose(reshape(x, {n, h, b, w, b, depth}), {0, 1, 3, 2, 4, 5});
  return reshape(x, {n, h, w, b * b * depth});
}

// images, size, method, preserve_aspect_ratio, antialias
Outputs resize(Call& c) {
  Value x = tensor(c);
  Ints size = integers(c, argument(c, "size"));
  if (size.size() != 2) c.config.invalid("'size' is [height, width]; got {}", to_string(size));
  if (flag(c, "preserve_aspect_ratio", false)) c.config.unsupported("tf.image.resize with preserve_aspect_ratio");
  return resample(x, {size[0], size[1], text(c, "method", "bilinear"), flag(c, "antialias", false)}, false);
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
    if (padding(c) == "same") {
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

std::span<const Function> nn_functions() {
  static const Function functions[] = {
      {"image.adjust_brightness", adjust_brightness},
      {"image.adjust_contrast", adjust_contrast},
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
      {"image.resize_with_crop_or_pad", resize_with_crop_or_pad},
      {"image.rgb_to_grayscale", rgb_to_grayscale},
      {"image.rgb_to_hsv", hsv_of_rgb},
      {"image.rot90", rotate_images},
      {"image.transpose", transpose_images},
      {"nn.avg_pool", average_pool<0>},
      {"nn.avg_pool1d", average_pool<1>},
      {"nn.avg_pool2d", average_pool<2>},
      {"nn.avg_pool3d", average_pool<3>},
      {"nn.batch_normalization", batch_normalization},
      {"nn.bias_add", bias_add},
      {"nn.conv1d", convolved<convolve>},
      {"nn.conv2d", convolved<convolve>},
      {"nn.conv3d", convolved<convolve>},
      {"nn.convolution", convolved<convolve>},
      {"nn.depth_to_space", depth_to_space},
      {"nn.depthwise_conv2d", convolved<convolve_depthwise>},
      {"nn.elu", activation<elu_of>},
      {"nn.gelu", gelu_of},
      {"nn.leaky_relu", leaky},
      {"nn.local_response_normalization", local_response_normalization},
      {"nn.log_softmax", along_axis<log_softmax>},
      {"nn.max_pool", max_pool<0>},
      {"nn.max_pool1d", max_pool<1>},
      {"nn.max_pool2d", max_pool<2>},
      {"nn.max_pool3d", max_pool<3>},
      {"nn.relu", activation<relu_of>},
      {"nn.relu6", activation<relu6>},
      {"nn.selu", activation<selu>},
      {"nn.silu", swish},
      {"nn.softmax", along_axis<softmax>},
      {"nn.softsign", activation<softsign>},
      {"nn.space_to_depth", space_to_depth},
  };
  return functions;
}

}  // namespace tutti::keras::tf
