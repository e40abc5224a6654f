// Convolution and pooling over spatial axes as Keras defines them, for the layers and for keras.ops. Values come and go in the caller's
// data format; kernels are Keras's own. What does not fit throws InvalidArgument.
#pragma once

#include "tutti/graph/build.h"

namespace tutti::keras {

class Call;
// The layer's input, of as many spatial axes.
Value spatial_input(const Call& c, int64_t spatial);

struct Windows {
  Ints strides, dilation = {};  // one entry a spatial axis; an empty dilation is ones
  std::string padding = "valid";
  bool channels_first = false;
};

// [n, c, spatial...] <-> [n, spatial..., c]; x itself when it is channels_last already.
Value to_channels_last(Value x, bool channels_first);
Value from_channels_last(Value x, bool channels_first);
// A vector of one entry a channel, shaped so that it broadcasts against x.
Value per_channel(Value vector, Value x, bool channels_first);

struct Padding {
  int64_t low = 0, high = 0;
};
// TensorFlow's rule: as many windows as strides fit, the odd element at the end. `window` is dilated already.
Padding same_padding(int64_t extent, int64_t window, int64_t stride);

// kernel: [spatial..., c / groups, filters]; the groups follow from the channels. Padding: valid, same, causal.
Value convolve(Value x, Value kernel, const Windows& windows);
// kernel: [spatial..., c, multiplier] -> c * multiplier channels.
Value convolve_depthwise(Value x, Value kernel, const Windows& windows);
// kernel: [spatial..., filters, c]. An empty output_padding is Keras's None. Padding: valid, same.
Value convolve_transposed(Value x, Value kernel, const Windows& windows, const Ints& output_padding);

// kind: max or average, which leaves padded elements out of its count. Padding: valid, same.
Value pool(Value x, const std::string& kind, const Ints& size, const Windows& windows);
// Windows that share the input out among output_size positions.
Value adaptive_pool(Value x, const std::string& kind, const Ints& output_size, bool channels_first);

}  // namespace tutti::keras
