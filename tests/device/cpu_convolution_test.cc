#include "tutti/device/cpu/gemm/convolution.h"

#include <utility>

#include "tests/device/cpu_contraction.h"
#include "tutti/device/cpu/gemm/depthwise.h"

namespace tutti::cpu {
namespace {

struct Result {
  double value, magnitude;
};

// The sum of one output value, by its definition.
Result expected(const ConvolutionShape& shape, const std::vector<float>& x, const std::vector<float>& weights, int64_t pixel,
                int64_t filter) {
  const Extents out = shape.output();
  const Extents place = {pixel / (out[1] * out[2]) % out[0], pixel / out[2] % out[1], pixel % out[2]};
  const int64_t image = pixel / (out[0] * out[1] * out[2]), channels = shape.channels / shape.groups;
  const int64_t first_channel = filter / (shape.filters / shape.groups) * channels;
  Result result{0, 0};
  for (int64_t tap = 0; tap < shape.kernel[0] * shape.kernel[1] * shape.kernel[2]; ++tap) {
    const Extents at = {tap / (shape.kernel[1] * shape.kernel[2]), tap / shape.kernel[2] % shape.kernel[1], tap % shape.kernel[2]};
    int64_t from = image;
    bool inside = true;
    for (size_t i = 0; i < 3; ++i) {
      const int64_t position = place[i] * shape.strides[i] + at[i] * shape.dilation[i] - shape.low[i];
      inside = inside && position >= 0 && position < shape.input[i];
      from = from * shape.input[i] + position;
    }
    for (int64_t c = 0; inside && c < channels; ++c) {
      const double product = double{x[static_cast<size_t>(from * shape.channels + first_channel + c)]} *
                             weights[static_cast<size_t>((tap * channels + c) * shape.filters + filter)];
      result.value += product;
      result.magnitude += std::abs(product);
    }
  }
  return result;
}

void check(const ConvolutionShape& shape, int threads, bool adds) {
  const int64_t taps = shape.kernel[0] * shape.kernel[1] * shape.kernel[2], pixels = shape.output_pixels();
  const auto x = normal_floats(shape.batch * shape.input[0] * shape.input[1] * shape.input[2] * shape.channels, 1);
  const auto weights = normal_floats(taps * shape.channels / shape.groups * shape.filters, 2), bias = normal_floats(shape.filters, 3);
  const auto residual = normal_floats(pixels * shape.filters, 4);
  std::vector<float> y(static_cast<size_t>(pixels * shape.filters), 77.0f);
  Epilogue epilogue = relu(bias.data());
  if (adds) epilogue.residual = residual.data();
  if (DepthwiseConvolution::handles(shape)) {
    DepthwiseConvolution(shape, weights.data()).run(x.data(), epilogue, y.data(), threads);
  } else {
    const Convolution convolution(shape, weights.data());
    Floats workspace(convolution.workspace(threads));
    convolution.run(x.data(), epilogue, y.data(), workspace.data(), threads);
  }
  for (int64_t i = 0; i < pixels * shape.filters; ++i) {
    const int64_t filter = i % shape.filters;
    const Result sum = expected(shape, x, weights, i / shape.filters, filter);
    const double value = sum.value + bias[static_cast<size_t>(filter)] + (adds ? residual[static_cast<size_t>(i)] : 0);
    expect_near(y[static_cast<size_t>(i)], expected_activation(value, epilogue), sum.magnitude, "y", i);
  }
}

void check(const ConvolutionShape& shape, int threads = 1) {
  for (bool adds : {false, true}) check(shape, threads, adds);
}

ConvolutionShape image(int64_t height, int64_t width, int64_t channels, int64_t filters, Extents kernel) {
  ConvolutionShape shape;
  shape.input = {1, height, width};
  shape.channels = channels;
  shape.filters = filters;
  shape.kernel = kernel;
  return shape;
}

TEST(cpu_convolution, a_kernel_of_one_pixel_is_a_product) {
  ConvolutionShape shape = image(5, 7, 9, 17, {1, 1, 1});
  check(shape);
  check(shape, 2);
  shape.batch = 3;
  check(shape, 2);
  shape.strides = {1, 2, 3};
  check(shape);
}

TEST(cpu_convolution, padding_strides_and_dilation) {
  for (int64_t stride : {1, 2, 3}) {
    for (int64_t dilation : {1, 2}) {
      for (int64_t low : {0, 1, 2}) {
        ConvolutionShape shape = image(11, 9, 3, 10, {1, 3, 2});
        shape.strides = {1, stride, 1};
        shape.dilation = {1, dilation, 3 - dilation};
        shape.low = {0, low, 1};
        shape.high = {0, 1, low};
        shape.batch = 2;
        check(shape, static_cast<int>(low) + 1);
      }
    }
  }
}

TEST(cpu_convolution, negative_padding_cuts_the_image) {
  ConvolutionShape shape = image(9, 8, 4, 5, {1, 3, 3});
  shape.low = {0, -1, -2};
  shape.high = {0, 1, -1};
  check(shape);
}

TEST(cpu_convolution, a_large_image_is_done_band_by_band) {
  ConvolutionShape shape = image(70, 60, 16, 8, {1, 5, 5});
  shape.low = shape.high = {0, 2, 2};
  check(shape);
  check(shape, 3);
  shape.strides = {1, 2, 2};
  check(shape);
}

TEST(cpu_convolution, many_filters_are_divided_among_threads) {
  ConvolutionShape shape = image(3, 3, 40, 100, {1, 3, 3});
  shape.low = shape.high = {0, 1, 1};
  for (int threads : {1, 2, 3}) check(shape, threads);
}

TEST(cpu_convolution, winograd_tiles) {
  for (const Extents& input : {Extents{1, 4, 4}, Extents{1, 5, 9}, Extents{1, 16, 15}}) {
    ConvolutionShape shape = image(input[1], input[2], 64, 80, {1, 3, 3});
    shape.low = {0, 1, 0};
    shape.high = {0, 1, 2};
    shape.batch = 2;
    ASSERT_TRUE(Winograd::handles(shape));
    for (int threads : {1, 2, 3}) check(shape, threads);
  }
}

// Weights and pixels as networks have them: the tolerance that models are compared with.
TEST(cpu_convolution, winograd_is_accurate) {
  ConvolutionShape shape = image(8, 8, 512, 64, {1, 3, 3});
  shape.low = shape.high = {0, 1, 1};
  auto x = normal_floats(8 * 8 * 512, 1), weights = normal_floats(9 * 512 * 64, 2);
  for (float& value : x) value = std::max(0.0f, value);
  for (float& value : weights) value *= std::sqrt(2.0f / (9 * 512));
  std::vector<float> y(8 * 8 * 64);
  const Convolution convolution(shape, weights.data());
  Floats workspace(convolution.workspace(1));
  convolution.run(x.data(), {}, y.data(), workspace.data(), 1);
  for (int64_t i = 0; i < 8 * 8 * 64; ++i) {
    const double value = expected(shape, x, weights, i / 64, i % 64).value;
    EXPECT_NEAR(y[static_cast<size_t>(i)], value, 1e-5 + 1e-4 * std::abs(value)) << i;
  }
}

// At every place of a tile, in the first and last channel, with every epilogue; all other results are as without it.
TEST(cpu_convolution, a_nan_or_infinity_reaches_only_the_windows_that_hold_it) {
  ConvolutionShape shape = image(9, 9, 48, 32, {1, 3, 3});
  shape.low = shape.high = {0, 1, 1};
  shape.batch = 2;
  ASSERT_TRUE(Winograd::handles(shape));
  auto x = normal_floats(2 * 9 * 9 * 48, 1), weights = normal_floats(9 * 48 * 32, 2), bias = normal_floats(32, 3);
  const auto residual = normal_floats(2 * 9 * 9 * 32, 4);
  const Convolution convolution(shape, weights.data());
  Epilogue epilogue;
  epilogue.bias = bias.data();
  epilogue.residual = residual.data();
  epilogue.alpha = 0.1f;
  epilogue.low = -1.0f;
  epilogue.high = 2.0f;
  std::vector<float> without(2 * 9 * 9 * 32), with(without.size());
  int64_t place = 0;
  for (Activation activation : {Activation::none, Activation::clip, Activation::leaky_relu, Activation::tanh}) {
    for (float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (int repeat = 0; repeat < 4; ++repeat) {
        place = (place + 37) % (9 * 9);  // in the second image
        epilogue.activation = activation;
        auto y = [&](std::vector<float>& to) {
          Floats workspace(convolution.workspace(2));
          convolution.run(x.data(), epilogue, to.data(), workspace.data(), 2);
        };
        y(without);
        float& changed = x[static_cast<size_t>((9 * 9 + place) * 48 + (repeat % 2) * 47)];
        const float before = std::exchange(changed, odd);
        y(with);
        for (int64_t i = 0; i < 2 * 9 * 9 * 32; ++i) {
          const int64_t pixel = i / 32 - 9 * 9, filter = i % 32;
          const bool holds = pixel >= 0 && std::abs(pixel / 9 - place / 9) <= 1 && std::abs(pixel % 9 - place % 9) <= 1;
          const Result sum = expected(shape, x, weights, i / 32, filter);
          const double value = sum.value + bias[static_cast<size_t>(filter)] + residual[static_cast<size_t>(i)];
          const double wanted = holds ? expected_activation(value, epilogue) : without[static_cast<size_t>(i)];
          expect_near(with[static_cast<size_t>(i)], wanted, holds ? 1 : sum.magnitude, "y", i);
        }
        changed = before;
      }
    }
  }
}

TEST(cpu_convolution, groups) {
  ConvolutionShape shape = image(6, 7, 12, 20, {1, 3, 3});
  shape.groups = 4;
  shape.low = {0, 1, 1};
  check(shape);
  check(shape, 2);
}

TEST(cpu_convolution, one_and_three_axes) {
  ConvolutionShape line;
  line.input = spatial(std::vector<int64_t>{50}, 1);
  line.kernel = spatial(std::vector<int64_t>{5}, 1);
  line.low = spatial(std::vector<int64_t>{4}, 0);
  line.channels = 6;
  line.filters = 11;
  check(line);
  line.dilation = spatial(std::vector<int64_t>{3}, 1);
  check(line, 2);

  ConvolutionShape volume;
  volume.batch = 2;
  volume.input = {5, 6, 7};
  volume.kernel = {3, 2, 3};
  volume.strides = {2, 1, 2};
  volume.channels = 3;
  volume.filters = 9;
  check(volume);
  volume.low = volume.high = {1, 1, 1};
  check(volume, 2);
  volume.dilation = {2, 2, 1};
  check(volume);
}

// Rows of weights are multiplied two by two where that fills a vector, in blocks of the depth as well.
TEST(cpu_convolution, an_even_number_of_channels_and_filters_that_leave_half_of_a_vector) {
  for (int64_t channels : {2, 6, 22, 402}) {
    for (int64_t filters : {1, 8, 17, 24, 40, 56}) {
      check(image(5, 7, channels, filters, {1, 1, 1}), 2);
      ConvolutionShape shape = image(5, 7, channels, filters, {1, 2, 3});
      shape.high = {0, 1, 1};
      if (channels < 100) check(shape);
    }
  }
}

ConvolutionShape depthwise(int64_t height, int64_t width, int64_t channels, Extents kernel) {
  ConvolutionShape shape = image(height, width, channels, channels, kernel);
  shape.groups = channels;
  return shape;
}

TEST(cpu_depthwise_convolution, kernels_strides_padding_and_dilation) {
  for (int64_t size : {1, 2, 3, 5, 7}) {
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t dilation : {1, 2}) {
        ConvolutionShape shape = depthwise(13, 17, 19 + size, {1, size, size});
        shape.batch = 2;
        shape.strides = {1, stride, stride};
        shape.dilation = {1, dilation, dilation};
        check(shape);
        shape.low = {0, size / 2, size / 2};
        shape.high = {0, size / 2, size};
        check(shape, 2);
      }
    }
  }
}

TEST(cpu_depthwise_convolution, windows_of_3_over_any_edge) {
  for (const auto& [height, width] :
       {std::pair<int64_t, int64_t>{1, 1}, {1, 5}, {2, 2}, {3, 9}, {4, 1}, {5, 6}, {6, 14}, {7, 7}, {9, 27}}) {
    for (int64_t stride : {1, 2}) {
      for (int64_t low : {0, 1, 2}) {
        for (int64_t high : {0, 1, 2}) {
          ConvolutionShape shape = depthwise(height, width, 37, {1, 3, 3});
          shape.batch = 2;
          shape.strides = {1, stride, stride};
          shape.low = {0, low, low};
          shape.high = {0, high, high};
          check(shape, 2);
        }
      }
    }
  }
}

TEST(cpu_depthwise_convolution, any_activation_behind_windows_of_3) {
  ConvolutionShape shape = depthwise(7, 9, 20, {1, 3, 3});
  shape.low = shape.high = {0, 1, 1};
  const auto x = normal_floats(7 * 9 * 20, 1), weights = normal_floats(9 * 20, 2);
  const DepthwiseConvolution convolution(shape, weights.data());
  std::vector<float> sums(x.size()), y(x.size());
  convolution.run(x.data(), {}, sums.data(), 1);
  for (Activation activation : {Activation::silu, Activation::clip, Activation::leaky_relu}) {
    Epilogue epilogue;
    epilogue.activation = activation;
    epilogue.high = 6;
    epilogue.alpha = 0.1f;
    convolution.run(x.data(), epilogue, y.data(), 1);
    for (size_t i = 0; i < y.size(); ++i) expect_near(y[i], expected_activation(sums[i], epilogue), 10, "y", static_cast<int64_t>(i));
  }
}

TEST(cpu_depthwise_convolution, windows_larger_than_the_image) {
  ConvolutionShape shape = depthwise(2, 1, 40, {1, 5, 5});
  for (int threads : {1, 2}) {
    shape.low = shape.high = {0, 4, 4};
    check(shape, threads);
    shape.low = shape.high = {0, 7, 7};  // some windows see nothing of it
    check(shape, threads);
  }
}

TEST(cpu_depthwise_convolution, few_pixels_are_divided_by_channels) {
  for (int64_t size : {3, 5, 7}) {
    for (int64_t dilation : {1, 2}) {
      ConvolutionShape shape = depthwise(7, 7, 100, {1, size, size});
      shape.low = shape.high = {0, dilation * (size / 2), dilation * (size / 2)};
      shape.dilation = {1, dilation, dilation};
      for (int threads : {2, 3}) check(shape, threads);
    }
  }
}

TEST(cpu_depthwise_convolution, many_channels_are_done_some_at_a_time) {
  for (int64_t size : {3, 9}) {
    ConvolutionShape shape = depthwise(6, 7, 300, {1, size, size});
    shape.low = shape.high = {0, size / 2, size / 2};
    for (int threads : {1, 2}) check(shape, threads);
    shape.strides = {1, 2, 2};
    check(shape);
  }
}

TEST(cpu_depthwise_convolution, one_axis) {
  ConvolutionShape shape = depthwise(31, 1, 12, {1, 4, 1});
  shape.low = {0, 3, 0};
  shape.strides = {1, 2, 1};
  check(shape);
}

TEST(cpu_convolution, empty_images) {
  ConvolutionShape shape = image(2, 2, 3, 4, {1, 3, 3});  // the kernel does not fit
  check(shape);
  shape = image(4, 4, 3, 4, {1, 3, 3});
  shape.batch = 0;
  check(shape, 2);
}

}  // namespace
}  // namespace tutti::cpu
