#include "tutti/keras/layers/windows.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/layer.h"

namespace tutti::keras {

namespace {

// Far above any real window, and small enough that no product of two overflows.
constexpr int64_t largest_window = int64_t{1} << 24;

void require(bool holds, std::string_view rule, const Ints& got) {
  if (!holds) fail<InvalidArgument>("keras", "{}; got {}", rule, to_string(got));
}

void require_window(std::string_view what, const Ints& sizes, int64_t spatial) {
  bool fits = static_cast<int64_t>(sizes.size()) == spatial &&
              std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 1 && size <= largest_window; });
  require(fits, fmt::format("'{}' has {} entries between 1 and {}", what, spatial, largest_window), sizes);
}

// Checks strides and dilation, and fills the dilation in.
Windows complete(Windows w, int64_t spatial) {
  if (w.dilation.empty()) w.dilation = Ints(static_cast<size_t>(spatial), 1);
  require_window("strides", w.strides, spatial);
  require_window("dilation_rate", w.dilation, spatial);
  return w;
}

Padding padding_of(const Windows& w, int64_t extent, int64_t window, int64_t stride) {
  if (w.padding == "valid") return {};
  if (w.padding == "same") return same_padding(extent, window, stride);
  fail<InvalidArgument>("keras", "'padding' is valid or same; got '{}'", w.padding);
}

// The spatial extents of a kernel, and its number of input channels along `channel_axis`, checked against x in channels_last order.
Ints spatial_extents(Value x, Value kernel) {
  if (x.rank() < 3 || x.rank() != kernel.rank())
    fail<InvalidArgument>("keras", "a kernel {} convolves inputs of rank {}; got {}", to_string(kernel.shape()), kernel.rank(),
                          to_string(x.shape()));
  Ints extents = kernel.shape().extents();
  extents.resize(extents.size() - 2);
  require_window("kernel_size", extents, x.rank() - 2);
  return extents;
}

// Keras refuses inputs that are smaller than the window.
Value not_emptied(Value x, Value y) {
  if (y.shape().elements() == 0 && x.shape().elements() != 0)
    fail<InvalidArgument>("keras", "the input {} is too small for the window: it would give {}", to_string(x.shape()),
                          to_string(y.shape()));
  return y;
}

Value convolve_channels_last(Value x, Value kernel, const Windows& w, int64_t groups) {
  Ints size = spatial_extents(x, kernel);
  ConvolutionDims dims{.strides = w.strides, .low = {}, .high = {}, .rhs_dilation = w.dilation, .groups = groups};
  for (size_t i = 0; i < size.size(); ++i) {
    int64_t window = (size[i] - 1) * w.dilation[i] + 1;
    Padding padding = w.padding == "causal" && size.size() == 1
                          ? Padding{window - 1, 0}
                          : padding_of(w, x.extent(static_cast<int64_t>(i) + 1), window, w.strides[i]);
    dims.low.push_back(padding.low);
    dims.high.push_back(padding.high);
  }
  return not_emptied(x, convolution(x, kernel, dims));
}

// The padding of the strided (dilated) input such that the output has Keras's length: input * stride for "same", the whole reach of
// the kernel for "valid", each plus output_padding where it is given (>= 0).
Padding transposed_padding(const std::string& padding, int64_t window, int64_t stride, int64_t output_padding) {
  if (padding == "valid") return {window - 1, window - 1 + (output_padding < 0 ? std::max<int64_t>(stride - window, 0) : output_padding)};
  if (padding != "same") fail<InvalidArgument>("keras", "'padding' is valid or same; got '{}'", padding);
  int64_t total = output_padding < 0 ? stride + window - 2 : window + window % 2 - 2 + output_padding;
  int64_t low = std::min(total / 2 + total % 2, window - 1);
  return {low, total - low};
}

Value pool_along(Value x, const std::string& kind, int64_t axis, int64_t size) {
  Ints ones(static_cast<size_t>(x.rank()), 1), zeros(static_cast<size_t>(x.rank()), 0), window = ones;
  window[static_cast<size_t>(axis)] = size;
  Value y = reduce_window(x, kind == "max" ? "max" : "add", {window, ones, zeros, zeros});
  return kind == "max" ? y : y / static_cast<double>(size);
}

}  // namespace

Value spatial_input(const Call& c, int64_t spatial) {
  Value x = c.x();
  if (x.rank() != spatial + 2) c.config.invalid("takes inputs of rank {}; got {}", spatial + 2, to_string(x.shape()));
  return x;
}

Value to_channels_last(Value x, bool channels_first) {
  if (!channels_first || x.rank() < 3) return x;
  Ints permutation{0};
  for (int64_t i = 2; i < x.rank(); ++i) permutation.push_back(i);
  permutation.push_back(1);
  return transpose(x, permutation);
}

Value from_channels_last(Value x, bool channels_first) {
  if (!channels_first || x.rank() < 3) return x;
  Ints permutation{0, x.rank() - 1};
  for (int64_t i = 1; i < x.rank() - 1; ++i) permutation.push_back(i);
  return transpose(x, permutation);
}

Value per_channel(Value vector, Value x, bool channels_first) {
  if (!channels_first) return vector;
  Ints extents(static_cast<size_t>(x.rank()), 1);
  if (extents.size() > 1) extents[1] = vector.extent(0);
  return reshape(vector, extents);
}

Padding same_padding(int64_t extent, int64_t window, int64_t stride) {
  int64_t windows = (extent + stride - 1) / stride;
  int64_t total = std::max<int64_t>((windows - 1) * stride + window - extent, 0);
  return {total / 2, total - total / 2};
}

Value convolve(Value x, Value kernel, const Windows& windows) {
  Windows w = complete(windows, x.rank() - 2);
  Value y = to_channels_last(x, w.channels_first);
  spatial_extents(y, kernel);
  int64_t channels = y.extent(-1), each = kernel.extent(-2);
  if (each < 1 || channels % each != 0)
    fail<InvalidArgument>("keras", "{} input channels are a multiple of the kernel's; got a kernel {}", channels,
                          to_string(kernel.shape()));
  return from_channels_last(convolve_channels_last(y, kernel, w, std::max<int64_t>(channels / each, 1)), w.channels_first);
}

Value convolve_depthwise(Value x, Value kernel, const Windows& windows) {
  Windows w = complete(windows, x.rank() - 2);
  Value y = to_channels_last(x, w.channels_first);
  Ints extents = spatial_extents(y, kernel);
  int64_t channels = kernel.extent(-2);
  if (channels < 1 || channels != y.extent(-1))
    fail<InvalidArgument>("keras", "a depthwise kernel {} has one entry an input channel; got {}", to_string(kernel.shape()), y.extent(-1));
  extents.push_back(1);
  extents.push_back(Shape({channels, kernel.extent(-1)}).elements());
  return from_channels_last(convolve_channels_last(y, reshape(kernel, extents), w, channels), w.channels_first);
}

Value convolve_transposed(Value x, Value kernel, const Windows& windows, const Ints& output_padding) {
  Windows w = complete(windows, x.rank() - 2);
  Value y = to_channels_last(x, w.channels_first);
  Ints size = spatial_extents(y, kernel), axes;
  require(output_padding.empty() || output_padding.size() == size.size(), "'output_padding' has one entry a spatial axis", output_padding);
  ConvolutionDims dims{
      .strides = Ints(size.size(), 1), .low = {}, .high = {}, .lhs_dilation = w.strides, .rhs_dilation = w.dilation, .groups = 1};
  for (size_t i = 0; i < size.size(); ++i) {
    if (!output_padding.empty())
      require(output_padding[i] >= 0 && output_padding[i] < w.strides[i], "'output_padding' is less than the strides", output_padding);
    int64_t window = (size[i] - 1) * w.dilation[i] + 1;
    Padding padding = transposed_padding(w.padding, window, w.strides[i], output_padding.empty() ? -1 : output_padding[i]);
    dims.low.push_back(padding.low);
    dims.high.push_back(padding.high);
    axes.push_back(static_cast<int64_t>(i));
  }
  return from_channels_last(not_emptied(y, convolution(y, reverse(swapaxes(kernel, -2, -1), axes), dims)), w.channels_first);
}

Value pool(Value x, const std::string& kind, const Ints& size, const Windows& windows) {
  int64_t spatial = x.rank() - 2;
  Windows w = complete(windows, spatial);
  require_window("pool_size", size, spatial);
  auto axes = static_cast<size_t>(x.rank());
  Window window{Ints(axes, 1), Ints(axes, 1), Ints(axes, 0), Ints(axes, 0)};
  Ints counted(axes, 1);  // the shape of the counts: one wherever nothing is pooled
  double elements = 1;
  for (size_t i = 0; i < size.size(); ++i) {
    size_t axis = i + (w.channels_first ? 2 : 1);
    Padding padding = padding_of(w, x.extent(static_cast<int64_t>(axis)), size[i], w.strides[i]);
    window.size[axis] = size[i];
    window.strides[axis] = w.strides[i];
    window.low[axis] = padding.low;
    window.high[axis] = padding.high;
    counted[axis] = x.extent(static_cast<int64_t>(axis));
    elements *= static_cast<double>(size[i]);
  }
  Value y = not_emptied(x, reduce_window(x, kind == "max" ? "max" : "add", window));
  if (kind == "max") return y;
  if (w.padding == "valid") return y / elements;
  return y / reduce_window(full(x.graph(), {x.dtype(), counted}, 1), "add", window);
}

// Every window along an axis has ceil(input / output) elements or one more: both kinds are pooled at every position, and each output
// picks its own.
Value adaptive_pool(Value x, const std::string& kind, const Ints& output_size, bool channels_first) {
  require_window("output_size", output_size, x.rank() - 2);
  for (size_t i = 0; i < output_size.size(); ++i) {
    auto axis = static_cast<int64_t>(i) + (channels_first ? 2 : 1);
    int64_t from = x.extent(axis), to = output_size[i];
    if (from < 1 || from > largest_window) fail<InvalidArgument>("keras", "cannot pool {} over axis {}", to_string(x.shape()), axis);
    int64_t small = (from + to - 1) / to, positions = from - small + 1;
    Ints picked;
    for (int64_t k = 0; k < to; ++k) {
      int64_t start = k * from / to, end = ((k + 1) * from + to - 1) / to;
      picked.push_back(end - start > small ? positions + start : start);
    }
    x = take(concatenate({pool_along(x, kind, axis, small), pool_along(x, kind, axis, small + 1)}, axis), picked, axis);
  }
  return x;
}

}  // namespace tutti::keras
