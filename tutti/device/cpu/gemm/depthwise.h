// Convolution in which each channel has its own kernel: groups == channels == filters, one or two spatial axes. Vectors run over channels,
// sums of several pixels of a row stay in registers. Windows that reach over the image's edge multiply only what is inside. Kernels of 3, 5
// or 7 columns read a place once for all windows that hold it; others go tap by tap, and the pixels at the edges by themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tutti/device/cpu/gemm/convolution_shape.h"
#include "tutti/device/cpu/gemm/depthwise_kernel.h"

namespace tutti::cpu {

class DepthwiseConvolution {
 public:
  static bool handles(const ConvolutionShape& shape);

  // weights: [kernel..., 1, channels]
  DepthwiseConvolution(const ConvolutionShape& shape, const float* weights);
  // With weights that each run brings.
  explicit DepthwiseConvolution(const ConvolutionShape& shape);
  int64_t packed_size() const;  // floats, 64-byte aligned
  void pack(const float* weights, float* packed) const;

  // The epilogue's residual is [output pixels, channels], contiguous. packed: the weights, if there are none from the beginning.
  void run(const float* x, Epilogue epilogue, float* y, int threads, const float* packed = nullptr) const;
  // Some rows of the output, counted through the batch, into y.
  void run_rows(const float* x, const Epilogue& epilogue, float* y, int64_t first, int64_t last, const float* packed = nullptr) const;
  // Some channels of all rows, which lie in x and y by themselves: [pixels, count]. Without a residual.
  bool can_stand_apart() const { return columns_.empty(); }
  void run_channels(const float* x, const Epilogue& epilogue, float* y, int64_t first, int64_t count) const;

 private:
  // Output rows or columns whose windows have the same taps inside the image.
  struct Band {
    int64_t begin, end, first_tap, last_tap;
  };
  struct Channels {
    int64_t first, count;
    int64_t at, pixel;  // where they begin in a pixel of x and y, and how many that has
  };
  static std::vector<Band> bands(const ConvolutionShape& shape, size_t axis);
  const Band& band_of(int64_t row) const;
  using RowsKernel = void (*)(const DepthwiseCall&, const DepthwiseRows&);
  // That makes this row and the next one, both counted through the batch, at once; or none.
  RowsKernel kernel_of_two(int64_t row, const Epilogue& epilogue) const;
  int64_t channels_at_once(int64_t channels, const Epilogue& epilogue) const;
  // Some channels of some rows; all of them, if the epilogue has an activation that is not made in registers.
  void run_part(const float* x, const Epilogue& epilogue, float* y, int64_t first, int64_t last, Channels channels,
                const float* packed) const;
  void run_row(const float* x, const Epilogue& epilogue, float* y, int64_t row, RowsKernel two, Channels channels,
               const float* packed) const;
  void run_taps(DepthwiseCall call, const std::vector<DepthwiseTap>* taps) const;

  ConvolutionShape shape_;
  Extents output_;
  std::vector<Band> rows_, columns_;
  std::vector<std::vector<DepthwiseTap>> taps_;  // [band of rows, band of columns]; none for whole rows
  int64_t padded_channels_ = 0;
  std::shared_ptr<float[]> weights_;  // [kernel height, kernel width, padded channels]
  const DepthwiseKernel* kernel_;
  bool of_3_ = false;  // two rows at once by the kernel for that
};

}  // namespace tutti::cpu
