// Convolution as a product of matrices whose left side is never made: a row of it is the window of an output pixel, read from the image in
// runs that are contiguous there (all of a kernel row, when the width is not dilated). Padding: bands of the image are copied with their
// margin into the workspace, a band small enough for the second-level cache.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tutti/device/cpu/gemm/convolution_shape.h"
#include "tutti/device/cpu/gemm/pack_memo.h"
#include "tutti/device/cpu/gemm/winograd.h"

namespace tutti::cpu {

class Convolution {
 public:
  // weights: [kernel..., channels / groups, filters]; they must outlive this.
  Convolution(const ConvolutionShape& shape, const float* weights, const Packer& packer = pack_anew);

  int64_t workspace(int threads) const;  // floats, 64-byte aligned

  // The epilogue's residual is [output pixels, filters], contiguous.
  void run(const float* x, Epilogue epilogue, float* y, float* workspace, int threads) const;

  // Some pixels of a shape that is_product(), from the first one's x to its y.
  void run_pixels(int64_t pixels, const float* x, const Epilogue& epilogue, float* y) const;

  const ConvolutionShape& shape() const { return shape_; }

 private:
  void run_rows(const float* x, const Epilogue& epilogue, float* y, float* band, int64_t first, int64_t last, int64_t first_panel,
                int64_t last_panel) const;
  void copy_band(const float* x, int64_t plane, int64_t row, float* band) const;

  std::optional<Winograd> winograd_;  // when it is the better way; then nothing below is used
  ConvolutionShape shape_;
  Extents output_;
  bool padded_ = false;
  int64_t rows_per_band_ = 0, band_rows_ = 0, band_width_ = 0, band_size_ = 0;  // output rows; input rows, pixels, floats
  Packs weights_;                                                               // [group]
  std::vector<int32_t> pixels_, taps_;
  int64_t depth_ = 0;  // floats of a tap
};

}  // namespace tutti::cpu
