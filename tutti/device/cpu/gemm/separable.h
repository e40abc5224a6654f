// A depthwise convolution with those beside it: one that makes its channels, a product that projects them, or both (MobileNet's blocks, and
// its first layers). What lies between them is as large as nothing else in such a model, and never leaves the second-level cache here:
// some rows of the image go through all of it at a time. Every number is what the convolutions one after the other would give.
#pragma once

#include <optional>

#include "tutti/device/cpu/gemm/convolution.h"
#include "tutti/device/cpu/gemm/depthwise.h"

namespace tutti::cpu {

class SeparableConvolution {
 public:
  struct Parts {
    std::optional<Convolution> expand;  // one of both at least; not by Winograd's way
    DepthwiseConvolution depthwise;
    std::optional<Convolution> project;  // a product of matrices
  };
  struct Epilogues {
    Epilogue expand, depthwise, project;  // the last one's alone has a residual: [output pixels, filters]
  };

  // shape: of the depthwise convolution, over an image of more than one column.
  SeparableConvolution(const ConvolutionShape& shape, Parts parts);

  // That make up for the rows which are expanded again because a piece's neighbour was another thread's.
  static int64_t rows_of_piece(const ConvolutionShape& shape, bool expands);

  // Whether threads divide the channels between the convolutions instead of the rows: of few rows, where nothing is expanded twice then,
  // and a thread reads a part of the weights only.
  bool is_by_channels(int threads) const;

  int64_t workspace(int threads) const;  // floats, 64-byte aligned

  void run(const float* x, const Epilogues& epilogues, float* y, float* workspace, int threads) const;

 private:
  struct Expanded;
  static constexpr int64_t kExpandedFloats = 16;
  int64_t of_thread(int threads) const;  // floats
  void run_rows(const float* x, const Epilogues& epilogues, float* y, float* workspace, int64_t first, int64_t last) const;
  void run_by_channels(const float* x, const Epilogues& epilogues, float* y, float* workspace, int threads) const;

  ConvolutionShape shape_;
  Parts parts_;
  Extents output_;
  int64_t reach_ = 0, rows_per_band_ = 0;          // input rows of an output row; output rows
  int64_t expanded_size_ = 0, filtered_size_ = 0;  // floats of a band between the convolutions
  int64_t expand_space_ = 0;                       // floats that the first one needs for itself
  int64_t pixels_before_ = 0, pixels_after_ = 0;   // of the depthwise convolution
};

}  // namespace tutti::cpu
