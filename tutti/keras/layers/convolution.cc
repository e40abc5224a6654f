// Convolutions: 1D, 2D and 3D are one function each kind.
#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/lora.h"
#include "tutti/keras/layers/windows.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

constexpr int64_t most_window_elements = 4096;  // each is a slice of the graph

Windows read_windows(const Config& config, int64_t spatial) {
  Ints ones(static_cast<size_t>(spatial), 1);
  return {config.ints("strides", spatial, ones), config.ints("dilation_rate", spatial, ones), config.text("padding", "valid"),
          config.channels_first()};
}

// Keras converts integer images to the kernel's dtype.
Value image(Call& c, int64_t spatial) { return convert(spatial_input(c, spatial), c.policy.compute); }

int64_t channels(const Config& config, Value x) { return x.extent(config.channels_first() ? 1 : -1); }

int64_t count(const Config& config, std::string_view key) {
  int64_t value = config.integer(key);
  if (value < 1) config.invalid("'{}' is positive; got {}", key, value);
  return value;
}

// [spatial..., first, second], a kernel over the config's kernel_size.
Shape kernel_shape(const Config& config, int64_t spatial, int64_t first, int64_t second) {
  Ints extents = config.ints("kernel_size", spatial);
  extents.push_back(first);
  extents.push_back(second);
  return extents;
}

// tf-keras writes groups = 1 for every convolution, and Keras has groups in the plain ones only.
void refuse_groups(const Config& config) {
  if (config.integer("groups", 1) != 1) config.unsupported("groups = {} has no meaning here", config.integer("groups"));
}

// Absent when the layer has none.
Value read_bias(Call& c, int64_t filters) { return c.config.flag("use_bias", true) ? c.weight("bias", {filters}) : Value{}; }

Outputs finish(Call& c, Value y, Value bias) {
  if (bias) y = y + per_channel(bias, y, c.config.channels_first());
  return activate(c, c.config.get("activation"), y);
}

template <int64_t spatial>
Outputs conv(Call& c) {
  Value x = image(c, spatial);
  int64_t filters = count(c.config, "filters"), groups = c.config.integer("groups", 1), depth = channels(c.config, x);
  if (groups < 1 || depth % groups != 0 || filters % groups != 0)
    c.config.invalid("{} input channels and {} filters are multiples of groups; got {}", depth, filters, groups);
  Value kernel = c.weight("kernel", kernel_shape(c.config, spatial, depth / groups, filters), {.trainable = !has_lora(c)});
  Value bias = read_bias(c, filters);
  return finish(c, convolve(x, with_lora(c, kernel), read_windows(c.config, spatial)), bias);
}

template <int64_t spatial>
Outputs conv_transpose(Call& c) {
  refuse_groups(c.config);
  Value x = image(c, spatial);
  int64_t filters = count(c.config, "filters");
  Value kernel = c.weight("kernel", kernel_shape(c.config, spatial, filters, channels(c.config, x)));
  Ints output_padding = c.config.ints("output_padding", spatial, {});
  return finish(c, convolve_transposed(x, kernel, read_windows(c.config, spatial), output_padding), read_bias(c, filters));
}

template <int64_t spatial>
Outputs depthwise_conv(Call& c) {
  refuse_groups(c.config);
  Value x = image(c, spatial);
  int64_t depth = channels(c.config, x), multiplier = count(c.config, "depth_multiplier");
  const char* name = c.lowering.keras_major < 3 ? "depthwise_kernel" : "kernel";
  Value kernel = c.weight(name, kernel_shape(c.config, spatial, depth, multiplier), {.option = "depthwise"});
  Value bias = read_bias(c, Shape({depth, multiplier}).elements());
  return finish(c, convolve_depthwise(x, kernel, read_windows(c.config, spatial)), bias);
}

template <int64_t spatial>
Outputs separable_conv(Call& c) {
  refuse_groups(c.config);
  Value x = image(c, spatial);
  int64_t depth = channels(c.config, x), multiplier = count(c.config, "depth_multiplier"), filters = count(c.config, "filters");
  Value depthwise = c.weight("depthwise_kernel", kernel_shape(c.config, spatial, depth, multiplier));
  Ints mixing(spatial, 1);
  mixing.push_back(Shape({depth, multiplier}).elements());
  mixing.push_back(filters);
  Value pointwise = c.weight("pointwise_kernel", mixing);
  Value y = convolve_depthwise(x, depthwise, read_windows(c.config, spatial));
  return finish(c, convolve(y, pointwise, {.strides = Ints(spatial, 1), .channels_first = c.config.channels_first()}),
                read_bias(c, filters));
}

// For each element of a window, in order, what the windows hold there: [batch, places..., elements, channels].
Value gather_windows(const Config& config, Value x, const Ints& size, const Ints& strides) {
  const size_t spatial = size.size();
  int64_t elements = 1;
  Ints limit = x.shape().extents(), steps(limit.size(), 1);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t extent = limit[i + 1];
    if (size[i] < 1 || size[i] > extent || strides[i] < 1)
      config.invalid("a window of {} at strides of {} does not fit {}", to_string(size), to_string(strides), to_string(x.shape()));
    elements *= size[i];
    if (elements > most_window_elements) config.unsupported("windows of more than {} elements", most_window_elements);
    limit[i + 1] = (extent - size[i]) / strides[i] * strides[i] + 1;  // of the first element
    steps[i + 1] = strides[i];
  }
  std::vector<Value> parts;
  for (int64_t element = 0; element < elements; ++element) {
    Ints start(limit.size(), 0), end = limit;
    for (size_t i = spatial, rest = static_cast<size_t>(element); i-- > 0; rest /= static_cast<size_t>(size[i])) {
      start[i + 1] = static_cast<int64_t>(rest) % size[i];
      end[i + 1] += start[i + 1];
    }
    parts.push_back(slice(x, start, end, steps));
  }
  return stack(parts, -2);
}

// Keras 2: a convolution with a kernel for each place.
template <int64_t spatial>
Outputs locally_connected(Call& c) {
  if (c.config.integer("implementation", 1) != 1 || c.config.text("padding", "valid") != "valid" || c.config.channels_first())
    c.config.unsupported("only implementation=1, which goes with padding=valid, and channels_last");
  Value x = image(c, spatial);
  const int64_t filters = count(c.config, "filters"), batch = x.extent(0);
  Value windows = gather_windows(c.config, x, c.config.ints("kernel_size", spatial), c.config.ints("strides", spatial, Ints(spatial, 1)));
  Ints out(windows.shape().begin(), windows.shape().begin() + 1 + spatial);
  out.push_back(filters);
  const int64_t places = Shape(Ints(out.begin() + 1, out.end() - 1)).elements(), features = windows.extent(-2) * windows.extent(-1);
  Value kernel = c.weight("kernel", {places, features, filters});
  Value y = dot_general(reshape(windows, {batch, places, features}), kernel, {{1}, {0}, {2}, {1}});  // [places, batch, filters]
  y = reshape(transpose(y, {1, 0, 2}), out);
  if (c.config.flag("use_bias", true)) y = y + c.weight("bias", Ints(out.begin() + 1, out.end()));
  return activate(c, c.config.get("activation"), y);
}

}  // namespace

Rows convolution_layers() {
  // tf-keras writes "groups" for all of them.
  constexpr std::string_view plain =
      "filters kernel_size strides padding data_format dilation_rate groups activation use_bias lora_rank lora_alpha";
  constexpr std::string_view transposed =
      "filters kernel_size strides padding output_padding data_format dilation_rate groups activation use_bias";
  constexpr std::string_view depthwise =
      "kernel_size depth_multiplier strides padding data_format dilation_rate groups activation use_bias";
  constexpr std::string_view separable =
      "filters kernel_size depth_multiplier strides padding data_format dilation_rate groups activation use_bias";
  constexpr std::string_view local = "filters kernel_size strides padding data_format activation use_bias implementation";
  constexpr std::string_view local_note = "Keras 2; implementation 2 and 3, and channels_first: refused";
  static const LayerRow rows[] = {
      {"Conv1D", conv<1>, Masking::drop, plain},
      {"Conv2D", conv<2>, Masking::drop, plain},
      {"Conv3D", conv<3>, Masking::drop, plain},
      {"Conv1DTranspose", conv_transpose<1>, Masking::drop, transposed},
      {"Conv2DTranspose", conv_transpose<2>, Masking::drop, transposed},
      {"Conv3DTranspose", conv_transpose<3>, Masking::drop, transposed},
      {"DepthwiseConv1D", depthwise_conv<1>, Masking::drop, depthwise},
      {"DepthwiseConv2D", depthwise_conv<2>, Masking::drop, depthwise},
      {"SeparableConv1D", separable_conv<1>, Masking::drop, separable},
      {"SeparableConv2D", separable_conv<2>, Masking::drop, separable},
      {"LocallyConnected1D", locally_connected<1>, Masking::drop, local, local_note},
      {"LocallyConnected2D", locally_connected<2>, Masking::drop, local, local_note},
      {"Convolution1D", conv<1>, Masking::drop, plain, older_name},
      {"Convolution2D", conv<2>, Masking::drop, plain, older_name},
      {"Convolution3D", conv<3>, Masking::drop, plain, older_name},
      {"Convolution1DTranspose", conv_transpose<1>, Masking::drop, transposed, older_name},
      {"Convolution2DTranspose", conv_transpose<2>, Masking::drop, transposed, older_name},
      {"Convolution3DTranspose", conv_transpose<3>, Masking::drop, transposed, older_name},
      {"SeparableConvolution1D", separable_conv<1>, Masking::drop, separable, older_name},
      {"SeparableConvolution2D", separable_conv<2>, Masking::drop, separable, older_name},
  };
  return rows;
}

}  // namespace tutti::keras
