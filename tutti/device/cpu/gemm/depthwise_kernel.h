// The kernel behind DepthwiseConvolution, compiled per Highway target: some pixels of one output row, all channels.
#pragma once

#include <cstdint>

#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

struct DepthwiseCall {
  const float* x;                    // at the first pixel's first tap that is inside the image
  int64_t x_row, x_column, x_pixel;  // floats from tap to tap down and across, and from pixel to pixel
  const float* weights;              // of that tap; [.., .., channels filled up to whole vectors], 64-byte aligned
  int64_t weights_row, weights_column;
  int64_t rows, columns;  // taps inside the image
  int64_t channels;
  const Epilogue* epilogue;
  const float* residual;
  float* y;  // [pixels, channels], as the residual
};

struct DepthwiseKernels {
  static constexpr int64_t kPixels = 6;
  int64_t lanes;
  void (*run[kPixels + 1])(const DepthwiseCall&);  // [pixels]
};

const DepthwiseKernels& depthwise_kernels();

}  // namespace tutti::cpu
