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
  static constexpr int64_t kPixelsOfPiece = 48;  // of work for threads, that make up for reading all weights

  // weights: [kernel..., channels / groups, filters]; they must outlive this.
  Convolution(const ConvolutionShape& shape, const float* weights, const Packer& packer = pack_anew);
  // With weights that each run brings and packs into the workspace, as in training.
  explicit Convolution(const ConvolutionShape& shape);

  int64_t workspace(int threads) const;  // floats, 64-byte aligned

  // The epilogue's residual is [output pixels, filters], contiguous.
  void run(const float* x, Epilogue epilogue, float* y, float* workspace, int threads) const;
  void run(const float* x, const float* weights, const Epilogue& epilogue, float* y, float* workspace, int threads) const;

  // Some rows of the output, counted through planes and batch, into y; of constant weights, and by Winograd's way only what that allows. A
  // residual, only of what is_product(), begins with the first of them. The workspace is that of one thread.
  void run_rows(const float* x, const Epilogue& epilogue, float* y, float* workspace, int64_t first, int64_t last) const;

  const ConvolutionShape& shape() const { return shape_; }
  const Panels& panels_of_product() const { return weights_[0].panels(); }  // of constant weights

 private:
  // What the rows of a piece are multiplied with, and where bands are put.
  struct Sides {
    const float* x;
    const float* packed;  // none: weights_
    float* bands;
  };
  void plan_bands();
  int64_t depth() const;        // of the matrix of weights
  int64_t packed_size() const;  // floats of a group's
  Panels panels(const float* packed, int64_t group) const;
  void run_panels(const Sides& sides, const Epilogue& epilogue, float* y, int threads) const;
  void run_bands(const Sides& sides, const Epilogue& epilogue, float* y, float* band, int64_t first, int64_t last, int64_t first_panel,
                 int64_t last_panel) const;
  void copy_band(const float* x, int64_t plane, int64_t row, int64_t rows, float* band) const;

  std::optional<Winograd> winograd_;  // when it is the better way; then nothing below is used
  ConvolutionShape shape_;
  Extents output_;
  bool padded_ = false;
  int64_t rows_per_band_ = 0, band_rows_ = 0, band_width_ = 0, band_size_ = 0;  // output rows; input rows, pixels, floats
  LeftRows left_ = LeftRows::any;
  Packs weights_;  // [group]; none where each run brings them
  std::vector<int32_t> pixels_, taps_;
  int64_t depth_ = 0;  // floats of a tap
};

}  // namespace tutti::cpu
