// The kernels behind DepthwiseConvolution, compiled per Highway target: some pixels of one output row.
#pragma once

#include <cstdint>

#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

// Where a tap of a window finds its pixel, in floats after the window's first place (which may be outside the image), and its weights.
struct DepthwiseTap {
  int64_t x, weights;
};

// What both kernels are given.
struct DepthwiseCall {
  const float* x;        // the first pixel's window, which may begin outside the image
  const float* weights;  // channels filled up to whole vectors, 64-byte aligned
  int64_t pixels;
  int64_t channels;  // of a pixel
  int64_t computed;  // of those, the first ones: all, or at least a vector
  const Epilogue* epilogue;
  const float* residual;
  float* y;  // [pixels, channels], as the residual
};

// Any taps, the same for all pixels.
struct DepthwiseTaps {
  int64_t x_pixel;  // floats from window to window
  const DepthwiseTap* taps;
  int64_t count;
};

// Windows of whole kernel rows, their places side by side; at least one vector of channels.
struct DepthwiseRows {
  int64_t columns, stride;              // places of a kernel row; from window to window
  int64_t rows, x_row, weights_row;     // kernel rows inside the image; floats from row to row
  int64_t weights_column;               // floats from place to place
  int64_t first_column, image_columns;  // of the image: where the first window begins, which may be negative, and how many there are
  // Of two rows of the output at once: kernel rows from the first one's windows to the second one's, and floats from result to result.
  int64_t down = 0, y_row = 0;
  bool above = false, below = false;  // of two rows by a kernel of 3: the first row under the windows is outside the image, or the last
};

struct DepthwiseKernel {
  int64_t lanes;
  void (*taps)(const DepthwiseCall&, const DepthwiseTaps&);
  void (*rows)(const DepthwiseCall&, const DepthwiseRows&);
  // Two rows of the output, whose windows overlap: what is loaded serves both. Null where there are too few registers.
  void (*two_rows)(const DepthwiseCall&, const DepthwiseRows&);
  // The same of a kernel of 3 rows and columns and one stride, without a residual, where at most one place is outside on each side.
  void (*two_rows_of_3)(const DepthwiseCall&, const DepthwiseRows&);

  bool has_rows(int64_t columns, int64_t stride, int64_t channels) const {
    return (columns == 3 || columns == 5 || columns == 7) && (stride == 1 || stride == 2) && channels >= lanes;
  }
  bool has_two_rows(int64_t columns) const { return two_rows != nullptr && columns <= 5; }
};

const DepthwiseKernel& depthwise_kernel();

}  // namespace tutti::cpu
