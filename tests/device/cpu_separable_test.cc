// A depthwise convolution and its neighbours band by band: bit for bit what they give one after the other.
#include "tutti/device/cpu/gemm/separable.h"

#include "tests/device/cpu_contraction.h"

namespace tutti::cpu {
namespace {

struct Block {
  int64_t batch = 1, height, width;
  int64_t in = 0;  // channels before the expansion; 0: there is none
  int64_t channels;
  int64_t out = 0;  // filters of the projection; 0: there is none
  Extents kernel = {1, 3, 3}, strides = {1, 1, 1}, dilation = {1, 1, 1}, low = {0, 1, 1}, high = {0, 1, 1};
  bool residual = false;
  bool by_channels = false;                                                               // on two threads
  Extents first_kernel = {1, 1, 1}, first_strides = {1, 1, 1}, first_margin = {0, 0, 0};  // of the expansion
};

std::vector<float> convolve(const Convolution& convolution, const std::vector<float>& x, const Epilogue& epilogue) {
  std::vector<float> y(static_cast<size_t>(convolution.shape().output_pixels() * convolution.shape().filters));
  Floats workspace(convolution.workspace(1));
  convolution.run(x.data(), epilogue, y.data(), workspace.data(), 1);
  return y;
}

void check_block(const Block& block) {
  const ConvolutionShape shape{block.batch,  block.channels, block.channels, block.channels, {1, block.height, block.width},
                               block.kernel, block.strides,  block.dilation, block.low,      block.high};
  ConvolutionShape before, after;
  before.batch = after.batch = block.batch;
  before.kernel = block.first_kernel;
  before.strides = block.first_strides;
  before.low = before.high = block.first_margin;
  for (size_t i = 0; i < 3; ++i)
    before.input[i] = (shape.input[i] - 1) * before.strides[i] + before.kernel[i] - before.low[i] - before.high[i];
  before.channels = block.in;
  after.input = shape.output();
  before.filters = after.channels = block.channels;
  after.filters = block.out;
  const auto expansion = normal_floats(before.kernel[1] * before.kernel[2] * block.in * block.channels, 2),
             taps = normal_floats(block.kernel[1] * block.kernel[2] * block.channels, 3),
             projection = normal_floats(block.channels * block.out, 4), bias = normal_floats(block.channels + block.out, 5);
  SeparableConvolution::Parts parts{{}, DepthwiseConvolution(shape, taps.data()), {}};
  if (block.in > 0) parts.expand.emplace(before, expansion.data());
  if (block.out > 0) parts.project.emplace(after, projection.data());

  const int64_t filters = block.out > 0 ? block.out : block.channels, size = shape.output_pixels() * filters;
  const auto residual = normal_floats(size, 6);
  SeparableConvolution::Epilogues epilogues{relu(bias.data()), relu(bias.data()), {}};
  epilogues.depthwise.activation = Activation::silu;
  Epilogue& last = block.out > 0 ? epilogues.project : epilogues.depthwise;
  last.bias = bias.data();
  last.residual = block.residual ? residual.data() : nullptr;
  last.residual_stride = filters;

  const ConvolutionShape& first = block.in > 0 ? before : shape;
  const auto x = normal_floats(block.batch * first.input[1] * first.input[2] * first.channels, 1);
  auto want = parts.expand ? convolve(*parts.expand, x, epilogues.expand) : x;
  std::vector<float> filtered(static_cast<size_t>(shape.output_pixels() * block.channels));
  parts.depthwise.run(want.data(), epilogues.depthwise, filtered.data(), 1);
  want = parts.project ? convolve(*parts.project, filtered, epilogues.project) : filtered;

  const SeparableConvolution together(shape, parts);
  EXPECT_EQ(together.is_by_channels(2), block.by_channels) << block.height << "x" << block.width;
  for (int threads : {1, 2, 3}) {
    Floats workspace(together.workspace(threads));
    std::vector<float> y(static_cast<size_t>(size), 77.0f);
    together.run(x.data(), epilogues, y.data(), workspace.data(), threads);
    EXPECT_EQ(y, want) << block.height << "x" << block.width << " in " << threads << " threads";
  }
}

TEST(cpu_separable, blocks_of_many_bands) {
  check_block({.height = 61, .width = 57, .in = 5, .channels = 96, .out = 7, .residual = true});
  check_block({.height = 61, .width = 57, .in = 5, .channels = 96, .out = 7, .strides = {1, 2, 2}, .low = {0, 0, 0}});
  check_block({.batch = 3, .height = 40, .width = 33, .in = 3, .channels = 130, .out = 9, .strides = {1, 2, 1}});
}

TEST(cpu_separable, one_neighbour_is_enough) {
  check_block({.height = 50, .width = 60, .in = 4, .channels = 70});
  check_block({.height = 50, .width = 60, .in = 4, .channels = 70, .residual = true});
  check_block({.batch = 2, .height = 50, .width = 60, .channels = 70, .out = 11});
}

TEST(cpu_separable, the_first_may_have_windows_of_its_own) {
  check_block({.height = 61,
               .width = 57,
               .in = 3,
               .channels = 96,
               .out = 24,
               .first_kernel = {1, 3, 3},
               .first_strides = {1, 2, 2},
               .first_margin = {0, 1, 1}});
  check_block({.batch = 2,
               .height = 40,
               .width = 33,
               .in = 3,
               .channels = 72,
               .strides = {1, 2, 2},
               .low = {0, 0, 0},
               .first_kernel = {1, 5, 2},
               .first_strides = {1, 3, 1}});
}

TEST(cpu_separable, rows_that_no_window_reads_are_not_needed) {
  check_block({.height = 30, .width = 20, .in = 3, .channels = 40, .out = 5, .kernel = {1, 2, 3}, .strides = {1, 5, 2}, .low = {0, 0, 1}});
  check_block(
      {.height = 30, .width = 300, .in = 3, .channels = 40, .out = 5, .kernel = {1, 1, 1}, .strides = {1, 3, 1}, .low = {}, .high = {}});
}

TEST(cpu_separable, wide_windows_and_margins) {
  check_block({.height = 37,
               .width = 150,
               .in = 3,
               .channels = 24,
               .out = 5,
               .kernel = {1, 5, 5},
               .dilation = {1, 3, 2},
               .low = {0, 6, 4},
               .high = {0, 6, 4}});
  check_block({.height = 6, .width = 900, .in = 3, .channels = 24, .out = 5, .kernel = {1, 3, 3}, .low = {0, 5, 1}, .high = {0, 7, 1}});
  check_block({.height = 26, .width = 200, .in = 3, .channels = 24, .out = 5, .low = {0, -2, 0}, .high = {0, -1, 0}});
}

TEST(cpu_separable, channels_of_small_images_are_divided) {
  if (panel_kernels().lanes < 8) GTEST_SKIP() << "panels of this machine's vectors divide these channels otherwise";
  check_block({.height = 7, .width = 7, .in = 20, .channels = 960, .out = 160, .residual = true, .by_channels = true});
  check_block({.height = 7, .width = 5, .in = 20, .channels = 480, .out = 48, .strides = {1, 2, 2}, .by_channels = true});
  check_block({.batch = 2,
               .height = 4,
               .width = 9,
               .in = 9,
               .channels = 96,
               .out = 60,
               .kernel = {1, 5, 5},
               .low = {0, 2, 2},
               .high = {0, 2, 2},
               .residual = true,
               .by_channels = true});
  check_block({.height = 9, .width = 1, .in = 200, .channels = 288, .out = 12, .by_channels = true});
  // Not where sums are made of pairs of rows.
  check_block({.height = 7, .width = 7, .in = 20, .channels = 960, .out = 3, .by_channels = !panel_kernels().has_pairs});
}

TEST(cpu_separable, channels_that_are_not_whole_panels_of_each_thread_are_not_divided) {
  check_block({.height = 7, .width = 7, .in = 20, .channels = 144, .out = 160});
  check_block({.height = 7, .width = 7, .in = 20, .channels = 950, .out = 160});
  check_block({.height = 7, .width = 7, .in = 20, .channels = 960});                                   // no projection
  check_block({.height = 60, .width = 60, .in = 20, .channels = 96, .out = 16});                       // many rows
  check_block({.height = 7, .width = 7, .in = 20, .channels = 96, .out = 16, .dilation = {1, 1, 2}});  // pixel by pixel
}

}  // namespace
}  // namespace tutti::cpu
