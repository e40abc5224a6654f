// tf.nn, and losses that are values of a model.
#include <algorithm>
#include <limits>

#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
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

// features, axis
Outputs relu_of_both_signs(Call& c) {
  Value x = tensor(c);
  return relu(concatenate({x, -x}, axis(c, x.rank(), "axis", -1)));
}
Outputs l2_loss(Call& c) {
  Value x = tensor(c);
  return sum(square(x), all_axes(x)) * 0.5;
}

Value crossentropy_of_logits(Value labels, Value logits) {
  return relu(logits) - logits * labels + log_plus_one(exponential(-abs(logits)));
}
// labels, logits
Outputs sigmoid_crossentropy(Call& c) {
  auto [labels, logits] = pair(c, "logits");
  return crossentropy_of_logits(labels, logits);
}
// labels, logits, axis
Outputs softmax_crossentropy(Call& c) {
  auto [labels, logits] = pair(c, "logits");
  const int64_t along = axis(c, logits.rank(), find(c, "dim") != nullptr ? "dim" : "axis", -1);
  return -sum(labels * log_softmax(logits, {along}), {along});
}

constexpr double fuzz = 1e-7;  // keras.backend.epsilon()
Value within_fuzz(Value x) { return minimum(maximum(x, fuzz), 1 - fuzz); }
// target, output, from_logits
Outputs binary_crossentropy(Call& c) {
  auto [target, output] = pair(c, "output");
  if (flag(c, "from_logits", false)) return crossentropy_of_logits(target, output);
  output = within_fuzz(output);
  return -(target * log(output + fuzz) + (1.0 - target) * log(1.0 - output + fuzz));
}
// target, output, from_logits, axis
Outputs categorical_crossentropy(Call& c) {
  auto [target, output] = pair(c, "output");
  const Ints along{axis(c, output.rank(), "axis", -1)};
  if (flag(c, "from_logits", false)) return -sum(target * log_softmax(output, along), along);
  return -sum(target * log(within_fuzz(output / sum(output, along, true))), along);
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

// What a list as 'padding' adds to x, which goes on without any.
struct Padded {
  Value x;
  std::string padding;
};
Padded padded(Call& c, Value x, double value, std::string_view otherwise = "VALID") {
  const Argument* given = find(c, "padding");
  if (given == nullptr || given->kind != Argument::Kind::list) return {x, padding_word(c, otherwise)};
  Ints low, high;
  for (const Argument& item : given->items) {
    const Ints sides = integers(c, item);
    const bool spatial = !low.empty() && low.size() != (is_channels_first(c) ? 1 : static_cast<size_t>(x.rank()) - 1);
    constexpr int64_t most = 1 << 16;
    for (int64_t side : sides)
      if (sides.size() != 2 || side < 0 || side > (spatial ? most : 0))
        c.config.invalid("'padding' has two counts an axis, of the samples and the channels 0; got {}", to_string(sides));
    low.push_back(sides.at(0));
    high.push_back(sides.at(1));
  }
  if (static_cast<int64_t>(low.size()) != x.rank()) c.config.invalid("'padding' has {} axes for {}", low.size(), to_string(x.shape()));
  return {pad(x, PadMode::constant, low, high, value), "valid"};
}

// `spatial` axes; 0 for as many as the input has.
template <int64_t spatial>
Outputs pooled(Call& c, const std::string& kind) {
  Value x = tensor(c);
  const int64_t axes = spatial > 0 ? spatial : std::clamp<int64_t>(x.rank() - 2, 1, 3);
  if (x.rank() != axes + 2) c.config.invalid("takes inputs of rank {}; got {}", axes + 2, to_string(x.shape()));
  bool first = is_channels_first(c);
  if (kind != "max" && find(c, "padding") != nullptr && find(c, "padding")->kind == Argument::Kind::list)
    c.config.invalid("'padding' of an average is a word");
  if (!is_float(x.dtype())) c.config.unsupported("pooling of integers");
  auto [input, word] = padded(c, x, -std::numeric_limits<double>::infinity());
  Windows windows{.strides = spatial_sizes(c, "strides", axes, first), .padding = word, .channels_first = first};
  return pool(input, kind, spatial_sizes(c, "ksize", axes, first), windows);
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

struct Convolution {
  Value x, kernel;
  Windows windows;
};
// input, filter, strides, padding, rates, data_format
Convolution read_convolution(Call& c, std::initializer_list<const char*> kernels, std::string_view otherwise = "VALID") {
  Value x = tensor(c), kernel = tensor(c, given_name(c, kernels), x.dtype());
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
  const Ints strides = sizes({"strides", "stride"}), dilation = sizes({"dilations", "dilation_rate", "rate"});
  auto [input, word] = padded(c, x, 0, otherwise);
  return {input, kernel, {strides, dilation, word, first}};
}
template <Value (*f)(Value, Value, const Windows&)>
Outputs convolved(Call& c) {
  const auto [x, kernel, windows] = read_convolution(c, {"filter", "filters"});
  return f(x, kernel, windows);
}
// input, depthwise_filter, pointwise_filter, strides, padding, rate, data_format
Outputs convolved_separably(Call& c) {
  const auto [x, kernel, windows] = read_convolution(c, {"depthwise_filter"});
  return convolve(convolve_depthwise(x, kernel, windows), tensor(c, "pointwise_filter", x.dtype()),
                  {.strides = Ints(windows.strides.size(), 1), .channels_first = windows.channels_first});
}

// input, filters, output_shape, strides, padding, data_format, dilations: what the convolution from output_shape to the input's shape
// would give back
Outputs convolved_back(Call& c) {
  if (const Argument* given = find(c, "padding"); given != nullptr && given->kind == Argument::Kind::list)
    c.config.unsupported("a list as 'padding' of a transposed convolution");
  const auto [input, kernel, windows] = read_convolution(c, {"filters", "filter"}, "SAME");
  const int64_t spatial = input.rank() - 2;
  const Ints output = spatial_sizes(c, "output_shape", spatial, windows.channels_first);
  if (windows.padding != "same" && windows.padding != "valid") c.config.invalid("'padding' is valid or same; got '{}'", windows.padding);
  Value x = to_channels_last(input, windows.channels_first);
  if (kernel.extent(-1) != x.extent(-1))
    c.config.invalid("a kernel {} gives back inputs of {} channels; got {}", to_string(kernel.shape()), kernel.extent(-1), x.extent(-1));
  ConvolutionDims dims{
      .strides = Ints(windows.strides.size(), 1), .low = {}, .high = {}, .lhs_dilation = windows.strides, .rhs_dilation = windows.dilation};
  Ints axes;
  for (int64_t i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t stride = windows.strides[at], window = (kernel.extent(i) - 1) * windows.dilation[at] + 1;
    const int64_t reach = (x.extent(i + 1) - 1) * stride + window, from = output[at];
    const bool same = windows.padding == "same";
    const int64_t steps = from < 1 || from > 1 << 24 ? -1 : same ? (from + stride - 1) / stride : (from - window) / stride + 1;
    if (steps != x.extent(i + 1) || (!same && from < window))
      c.config.invalid("'output_shape' is {}, from which no such convolution gives {}", to_string(output), to_string(input.shape()));
    const int64_t low = same ? std::max<int64_t>(reach - from, 0) / 2 : 0;
    // Where the windows do not come to the end of the output, nothing is given back.
    dims.low.push_back(window - 1 - low);
    dims.high.push_back(window - 1 + from - reach + low);
    axes.push_back(i);
  }
  return from_channels_last(convolution(x, reverse(swapaxes(kernel, -2, -1), axes), dims), windows.channels_first);
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

}  // namespace

std::span<const Function> nn_functions() {
  static const Function functions[] = {
      {"keras.backend.binary_crossentropy", binary_crossentropy},
      {"keras.backend.categorical_crossentropy", categorical_crossentropy},
      {"nn.avg_pool", average_pool<0>},
      {"nn.avg_pool1d", average_pool<1>},
      {"nn.avg_pool2d", average_pool<2>},
      {"nn.avg_pool3d", average_pool<3>},
      {"nn.batch_normalization", batch_normalization},
      {"nn.bias_add", bias_add},
      {"nn.conv1d", convolved<convolve>},
      {"nn.conv1d_transpose", convolved_back},
      {"nn.conv2d", convolved<convolve>},
      {"nn.conv2d_transpose", convolved_back},
      {"nn.conv3d", convolved<convolve>},
      {"nn.conv3d_transpose", convolved_back},
      {"nn.convolution", convolved<convolve>},
      {"nn.crelu", relu_of_both_signs},
      {"nn.depth_to_space", depth_to_space},
      {"nn.depthwise_conv2d", convolved<convolve_depthwise>},
      {"nn.elu", activation<elu_of>},
      {"nn.gelu", gelu_of},
      {"nn.l2_loss", l2_loss},
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
      {"nn.separable_conv2d", convolved_separably},
      {"nn.sigmoid_cross_entropy_with_logits", sigmoid_crossentropy},
      {"nn.silu", swish},
      {"nn.softmax", along_axis<softmax>},
      {"nn.softmax_cross_entropy_with_logits", softmax_crossentropy},
      {"nn.softmax_cross_entropy_with_logits_v2", softmax_crossentropy},
      {"nn.softsign", activation<softsign>},
      {"nn.space_to_depth", space_to_depth},
  };
  return functions;
}

}  // namespace tutti::keras::tf
