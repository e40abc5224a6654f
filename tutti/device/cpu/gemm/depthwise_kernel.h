// The kernel behind DepthwiseConvolution, compiled per Highway target: some pixels of one output row.
#pragma once

#include <cstdint>

#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

// Where a tap of a window finds its pixel, in floats after the window's first place (which may be outside the image), and its weights.
struct DepthwiseTap {
  int64_t x, weights;
};

struct DepthwiseCall {
  const float* x;            // the first pixel's window
  int64_t x_pixel;           // floats from pixel to pixel
  const float* weights;      // channels filled up to whole vectors, 64-byte aligned
  const DepthwiseTap* taps;  // those inside the image
  int64_t tap_count;
  int64_t columns, stride;  // taps come in rows of so many pixels side by side, or 0; pixels from window to window
  int64_t pixels;
  int64_t channels;
  const Epilogue* epilogue;
  const float* residual;
  float* y;  // [pixels, channels], as the residual
};

struct DepthwiseKernel {
  int64_t lanes;
  void (*run)(const DepthwiseCall&);
};

const DepthwiseKernel& depthwise_kernel();

}  // namespace tutti::cpu
