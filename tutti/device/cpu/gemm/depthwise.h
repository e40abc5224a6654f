// Convolution in which each channel has its own kernel: groups == channels == filters, one or two spatial axes. Vectors run over channels,
// sums of several pixels of a row stay in registers. Windows that reach over the image's edge multiply only what is inside.
#pragma once

#include <cstdint>
#include <memory>

#include "tutti/device/cpu/gemm/convolution_shape.h"
#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

struct DepthwiseKernels;

class DepthwiseConvolution {
 public:
  static bool handles(const ConvolutionShape& shape);

  // weights: [kernel..., 1, channels]
  DepthwiseConvolution(const ConvolutionShape& shape, const float* weights);

  // The epilogue's residual is [output pixels, channels], contiguous.
  void run(const float* x, Epilogue epilogue, float* y, int threads) const;

 private:
  void run_row(const float* x, const Epilogue& epilogue, float* y, int64_t row) const;

  ConvolutionShape shape_;
  Extents output_;
  int64_t inner_first_ = 0, inner_last_ = 0;  // columns of the output whose windows are inside the image
  int64_t padded_channels_ = 0;
  std::shared_ptr<float[]> weights_;  // [kernel height, kernel width, padded channels]
  const DepthwiseKernels* kernels_;
};

}  // namespace tutti::cpu
