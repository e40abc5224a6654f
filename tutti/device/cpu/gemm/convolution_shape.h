// The extents of a convolution over channels-last images: x [batch, spatial..., channels], weights [spatial..., channels / groups,
// filters], y [batch, spatial..., filters]. One to three spatial axes are held as three: depth, height, width; absent ones have extent 1.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tutti::cpu {

using Extents = std::array<int64_t, 3>;

struct ConvolutionShape {
  int64_t batch = 1, channels = 1, filters = 1, groups = 1;
  Extents input = {1, 1, 1}, kernel = {1, 1, 1}, strides = {1, 1, 1}, dilation = {1, 1, 1};
  Extents low = {0, 0, 0}, high = {0, 0, 0};  // padding; may be negative

  Extents output() const;
  int64_t output_pixels() const;  // batch included
  // 1x1, stride 1: a product of matrices, of which any pixels can be made by themselves.
  bool is_product() const;
  // A high below zero is that of pixels which no window reads.
  bool padded() const { return low != Extents{} || high[0] > 0 || high[1] > 0 || high[2] > 0; }
};

// One to three spatial extents as three; a single axis becomes the height.
Extents spatial(std::span<const int64_t> extents, int64_t fill);

}  // namespace tutti::cpu
