// Convolution with a 3x3 kernel and stride 1 by Winograd's F(2x2, 3x3): a tile of 2x2 results takes 16 products per pair of channels in
// place of 36. Tiles of 4x4 pixels are transformed into 16 planes, each plane is multiplied by the transformed weights, and the products
// are transformed back. Sums are in float32 and as accurate as the plain ones to about a factor of two. A NaN or an infinity would
// spread to all 2x2 results of its tiles, so tiles that hold one are summed plainly, which is slow.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/device/cpu/gemm/convolution_shape.h"
#include "tutti/device/cpu/gemm/pack_memo.h"
#include "tutti/device/cpu/gemm/winograd_kernel.h"

namespace tutti::cpu {

class Winograd {
 public:
  // Worth it where products outweigh the transforms: many channels and filters.
  static bool handles(const ConvolutionShape& shape);

  // weights: [3, 3, channels, filters], finite; they must outlive this.
  Winograd(const ConvolutionShape& shape, const float* weights, const Packer& packer = pack_anew);

  int64_t workspace(int threads) const;  // floats, 64-byte aligned

  // The epilogue's residual is [output pixels, filters], contiguous.
  void run(const float* x, const Epilogue& epilogue, float* y, float* workspace, int threads) const;
  // Some rows of an output that has an even number of them, counted through the batch, into y; without a residual, on this thread. The
  // first and how many they are is even.
  void run_rows(const float* x, const Epilogue& epilogue, float* y, float* workspace, int64_t first, int64_t last) const;

 private:
  // The first pixel of an image that a tile's results stand at.
  struct Place {
    int64_t image, row, column;
  };
  Place place_of(int64_t tile) const;
  // The place of a pixel in the input, or null outside of the image.
  const float* pixel(const float* x, int64_t image, int64_t row, int64_t column) const;
  // False when the tile's pixels are not all finite.
  bool transform_tile(const float* x, int64_t tile, float* planes) const;
  void sum_plainly(const float* x, int64_t tile, int64_t first, int64_t last, const Epilogue& epilogue, float* y) const;
  void finish_tile(const float* products, int64_t tile, int64_t first, int64_t last, const Epilogue& epilogue, float* y) const;
  void run_block(const float* x, const Epilogue& epilogue, float* y, float* workspace, int64_t first_tile, int64_t last_tile,
                 int64_t first_panel, int64_t last_panel) const;

  ConvolutionShape shape_;
  Extents output_;
  int64_t tiles_down_, tiles_across_, tiles_, block_;  // in an image; in all, in a block
  const float* weights_;
  Packs planes_;              // [16], each [channels, filters]
  std::vector<float> zeros_;  // [channels]: a pixel outside the image
  const WinogradKernels* kernels_;
};

}  // namespace tutti::cpu
