// keras.ops with windows over spatial axes: convolution, pooling, patches, blocks.
#include "tutti/keras/layers/windows.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

Value image_like(Call& c) {
  Value x = array(c, "inputs");
  if (x.rank() < 3 || x.rank() > 5) c.config.invalid("takes [batch, one to three spatial axes, channels]; got {}", to_string(x.type()));
  return x;
}

// Keras lowers the case of "padding" itself.
std::string padding_option(Call& c) {
  std::string padding = c.config.text("padding", "valid");
  for (char& letter : padding) letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
  if (padding != "valid" && padding != "same") c.config.unsupported("padding '{}' is not done; hint: valid and same are", padding);
  return padding;
}

// One entry an axis; required where there is no other.
Ints positive(Call& c, std::string_view key, int64_t count, Ints otherwise) {
  Ints out = otherwise.empty() ? c.config.ints(key, count) : c.config.ints(key, count, std::move(otherwise));
  for (int64_t value : out)
    if (value < 1 || value > most_elements) c.config.invalid("'{}' is between 1 and {}; got {}", key, most_elements, to_string(out));
  return out;
}

Ints ones(int64_t count) { return Ints(static_cast<size_t>(count), 1); }

Windows windows_option(Call& c, int64_t spatial, const Ints& strides) {
  return {positive(c, "strides", spatial, strides), positive(c, "dilation_rate", spatial, ones(spatial)), padding_option(c),
          c.config.channels_first()};
}

template <Value (*f)(Value, Value, const Windows&)>
Outputs convolution_(Call& c) {
  Value x = image_like(c);
  Operand kernel = operand(c, 1, "kernel");
  Value k = kernel.value();
  if (k.rank() != x.rank()) c.config.invalid("'kernel' has rank {}; got {}", x.rank(), to_string(k.type()));
  return f(convert(x, k.dtype()), k, windows_option(c, x.rank() - 2, ones(x.rank() - 2)));
}

Outputs separable_convolution(Call& c) {
  Value x = image_like(c), depthwise = operand(c, 1, "depthwise_kernel").value(), pointwise = operand(c, 2, "pointwise_kernel").value();
  if (depthwise.rank() != x.rank() || pointwise.rank() != x.rank()) c.config.invalid("kernels have rank {}", x.rank());
  int64_t spatial = x.rank() - 2;
  Windows windows = windows_option(c, spatial, ones(spatial));
  Value y = convolve_depthwise(convert(x, depthwise.dtype()), depthwise, windows);
  return convolve(convert(y, pointwise.dtype()), pointwise, {ones(spatial), {}, "valid", windows.channels_first});
}

Outputs pooling(Call& c, const std::string& kind) {
  Value x = image_like(c);
  int64_t spatial = x.rank() - 2;
  Ints size = positive(c, "pool_size", spatial, ones(spatial));
  return pool(x, kind, size, {positive(c, "strides", spatial, size), {}, padding_option(c), c.config.channels_first()});
}

Outputs adaptive_pooling(Call& c, const std::string& kind) {
  Value x = image_like(c);
  return adaptive_pool(x, kind, positive(c, "output_size", x.rank() - 2, {}), c.config.channels_first());
}

struct Blocks {
  Value x;  // [n, h, w, c] or [n, c, h, w]
  int64_t size;
  bool channels_first;
};
Blocks blocks(Call& c) {
  Value x = array(c);
  if (x.rank() != 4) c.config.invalid("takes a batch of images; got {}", to_string(x.type()));
  return {x, positive(c, "block_size", 1, {})[0], c.config.channels_first()};
}

Outputs depth_to_space(Call& c) {
  auto [x, b, first] = blocks(c);
  int64_t n = x.extent(0), h = x.extent(first ? 2 : 1), w = x.extent(first ? 3 : 2), depth = x.extent(first ? 1 : 3);
  if (depth % (b * b) != 0) c.config.invalid("{} channels are not blocks of {} x {}", depth, b, b);
  int64_t out = depth / (b * b);
  if (first) return reshape(transpose(reshape(x, {n, out, b, b, h, w}), {0, 1, 4, 2, 5, 3}), {n, out, h * b, w * b});
  return reshape(transpose(reshape(x, {n, h, w, b, b, out}), {0, 1, 3, 2, 4, 5}), {n, h * b, w * b, out});
}

Outputs space_to_depth(Call& c) {
  auto [x, b, first] = blocks(c);
  int64_t n = x.extent(0), h = x.extent(first ? 2 : 1), w = x.extent(first ? 3 : 2), depth = x.extent(first ? 1 : 3);
  if (h % b != 0 || w % b != 0) c.config.invalid("{} x {} is not made of blocks of {} x {}", h, w, b, b);
  if (first) return reshape(transpose(reshape(x, {n, depth, h / b, b, w / b, b}), {0, 1, 3, 5, 2, 4}), {n, depth * b * b, h / b, w / b});
  return reshape(transpose(reshape(x, {n, h / b, b, w / b, b, depth}), {0, 1, 3, 2, 4, 5}), {n, h / b, w / b, depth * b * b});
}

// The offsets of a window's elements, the last axis fastest.
std::vector<Ints> offsets(const Config& config, const Ints& size) {
  double count = 1;
  for (int64_t extent : size) count *= static_cast<double>(extent);
  if (count > static_cast<double>(most_parts)) config.unsupported("windows of {} elements are not done", count);
  std::vector<Ints> out{{}};
  for (int64_t extent : size) {
    std::vector<Ints> longer;
    for (const Ints& offset : out)
      for (int64_t i = 0; i < extent; ++i) {
        longer.push_back(offset);
        longer.back().push_back(i);
      }
    out = std::move(longer);
  }
  return out;
}

// For each element of a window, what it sees on its way along the axes [first_axis, first_axis + size.size()) of x.
std::vector<Value> seen_by_window(const Config& config, Value x, int64_t first_axis, const Ints& size, const Ints& strides,
                                  const Ints& dilation) {
  std::vector<Value> out;
  for (const Ints& offset : offsets(config, size)) {
    Value part = x;
    for (size_t i = 0; i < size.size(); ++i) {
      int64_t axis = first_axis + static_cast<int64_t>(i), extent = x.extent(axis);
      int64_t reach = Shape({dilation[i], size[i] - 1}).elements() + 1;
      if (reach > extent) config.invalid("a window of {} is larger than {}", reach, to_string(x.type()));
      int64_t count = (extent - reach) / strides[i] + 1, start = offset[i] * dilation[i];
      part = slice_axis(part, axis, start, start + (count - 1) * strides[i] + 1, strides[i]);
    }
    out.push_back(part);
  }
  return out;
}

Value padded_axes(Value x, int64_t first_axis, const Ints& low, const Ints& high) {
  Ints all_low(static_cast<size_t>(x.rank()), 0), all_high = all_low;
  std::copy(low.begin(), low.end(), all_low.begin() + first_axis);
  std::copy(high.begin(), high.end(), all_high.begin() + first_axis);
  return pad(x, 0.0, all_low, all_high);
}

// Each patch becomes the channels of one position, its rows, columns and channels in this order.
Outputs extract_patches(Call& c) {
  Value x = array(c, "images");
  const Json& given = c.config.at("size");
  int64_t spatial = given.is_list() ? static_cast<int64_t>(given.size()) : 2;
  if (spatial < 2 || spatial > 3) c.config.invalid("'size' has two or three entries; got {}", given.dump());
  bool single = x.rank() == spatial + 1, first = c.config.channels_first();
  if (single) x = expand_dims(x, {0});
  if (x.rank() != spatial + 2) c.config.invalid("takes images of {} axes; got {}", spatial, to_string(x.type()));
  x = to_channels_last(x, first);
  Ints size = positive(c, "size", spatial, {}), strides = positive(c, "strides", spatial, size),
       dilation = positive(c, "dilation_rate", spatial, ones(spatial)), low(size.size(), 0), high = low;
  if (padding_option(c) == "same")
    for (size_t i = 0; i < size.size(); ++i) {
      auto padding = same_padding(x.extent(static_cast<int64_t>(i) + 1), dilation[i] * (size[i] - 1) + 1, strides[i]);
      low[i] = padding.low;
      high[i] = padding.high;
    }
  x = padded_axes(x, 1, low, high);
  Value out = from_channels_last(concatenate(seen_by_window(c.config, x, 1, size, strides, dilation), -1), first);
  return single ? squeeze(out, {0}) : out;
}

struct Sliding {
  Ints kernel, dilation, padding, stride;
};
Sliding sliding(Call& c) {
  Ints padding = c.config.ints("padding", 2, {0, 0});
  for (int64_t p : padding)
    if (p < 0 || p > most_elements) c.config.invalid("'padding' is between 0 and {}; got {}", most_elements, to_string(padding));
  return {positive(c, "kernel_size", 2, {}), positive(c, "dilation", 2, {1, 1}), padding, positive(c, "stride", 2, {1, 1})};
}

// x: [n, c, h, w] -> [n, c * kernel, positions]
Outputs unfold(Call& c) {
  Value x = array(c);
  if (x.rank() != 4) c.config.invalid("takes [batch, channels, height, width]; got {}", to_string(x.type()));
  auto [kernel, dilation, padding, stride] = sliding(c);
  Value all = stack(seen_by_window(c.config, padded_axes(x, 2, padding, padding), 2, kernel, stride, dilation), 2);
  return flatten(reshape(all, {x.extent(0), x.extent(1) * all.extent(2), all.extent(3), all.extent(4)}), 2);
}

// The sum of overlapping blocks, the other way around: x: [n, c * kernel, positions] -> [n, c, h, w].
Outputs fold(Call& c) {
  Value x = array(c);
  auto [kernel, dilation, padding, stride] = sliding(c);
  Ints size = positive(c, "output_size", 2, {}), count, whole;
  for (size_t i = 0; i < 2; ++i) {
    whole.push_back(size[i] + 2 * padding[i]);
    int64_t reach = Shape({dilation[i], kernel[i] - 1}).elements() + 1;
    if (reach > whole[i]) c.config.invalid("a window of {} is larger than {}", reach, whole[i]);
    count.push_back((whole[i] - reach) / stride[i] + 1);
  }
  int64_t window = Shape(kernel).elements();
  if (x.rank() != 3 || x.extent(1) % window != 0 || x.extent(2) != count[0] * count[1])
    c.config.invalid("takes [batch, channels * {}, {}]; got {}", window, count[0] * count[1], to_string(x.type()));
  int64_t channels = x.extent(1) / window;
  x = reshape(x, {x.extent(0), channels, window, count[0], count[1]});
  Value total;
  std::vector<Ints> all = offsets(c.config, kernel);
  for (size_t k = 0; k < all.size(); ++k) {
    Ints low{0, 0}, high{0, 0}, interior{0, 0};
    for (size_t i = 0; i < 2; ++i) {
      low.push_back(all[k][i] * dilation[i]);
      interior.push_back(stride[i] - 1);
      high.push_back(whole[i] - low.back() - ((count[i] - 1) * stride[i] + 1));
    }
    Value spread = pad(index_axis(x, 2, static_cast<int64_t>(k)), 0.0, low, high, interior);
    total = total ? total + spread : spread;
  }
  return slice_axis(slice_axis(total, 2, padding[0], padding[0] + size[0]), 3, padding[1], padding[1] + size[1]);
}

// Windows of the last axis as a new axis of length sequence_length.
Outputs extract_sequences(Call& c) {
  Value x = array(c);
  if (x.rank() < 1) c.config.invalid("takes signals; got {}", to_string(x.type()));
  int64_t length = positive(c, "sequence_length", 1, {})[0], stride = positive(c, "sequence_stride", 1, {})[0], n = x.extent(-1);
  if (length > n) c.config.invalid("sequences of {} do not fit {}", length, to_string(x.type()));
  int64_t count = (n - length) / stride + 1;
  if (Shape({count, length}).elements() > most_elements) c.config.unsupported("{} sequences of {} are not done", count, length);
  Ints indices;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < length; ++j) indices.push_back(i * stride + j);
  Ints extents(x.shape().begin(), x.shape().end() - 1);
  extents.insert(extents.end(), {count, length});
  return reshape(take(x, indices, -1), extents);
}

constexpr std::string_view convolution_options = "strides padding data_format dilation_rate";
constexpr std::string_view pooling_options = "pool_size strides padding data_format";

}  // namespace

Rows window_operations() {
  static const LayerRow rows[] = {
      operation(
          "AdaptiveAveragePool", [](Call& c) { return adaptive_pooling(c, "average"); }, "output_size data_format"),
      operation(
          "AdaptiveMaxPool", [](Call& c) { return adaptive_pooling(c, "max"); }, "output_size data_format"),
      operation(
          "AveragePool", [](Call& c) { return pooling(c, "average"); }, pooling_options),
      operation("Conv", convolution_<convolve>, convolution_options),
      refused("ConvTranspose", "Keras 3.15 cannot run it inside a model; hint: the layer Conv2DTranspose"),
      operation("DepthToSpace", depth_to_space, "block_size data_format"),
      operation("DepthwiseConv", convolution_<convolve_depthwise>, convolution_options),
      operation("ExtractPatches", extract_patches, "size strides dilation_rate padding data_format"),
      operation("ExtractSequences", extract_sequences, "sequence_length sequence_stride"),
      operation("Fold", fold, "output_size kernel_size dilation padding stride"),
      operation(
          "MaxPool", [](Call& c) { return pooling(c, "max"); }, pooling_options),
      operation("SeparableConv", separable_convolution, convolution_options),
      operation("SpaceToDepth", space_to_depth, "block_size data_format"),
      operation("Unfold", unfold, "kernel_size dilation padding stride"),
  };
  return rows;
}

}  // namespace tutti::keras
