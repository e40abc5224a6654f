#include "tutti/device/cpu/gemm/convolution_shape.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::cpu {

Extents ConvolutionShape::output() const {
  Extents output;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t span = input[i] + low[i] + high[i] - (kernel[i] - 1) * dilation[i] - 1;
    output[i] = span < 0 ? 0 : span / strides[i] + 1;
  }
  return output;
}

int64_t ConvolutionShape::output_pixels() const {
  const Extents extents = output();
  return batch * extents[0] * extents[1] * extents[2];
}

bool ConvolutionShape::is_product() const {
  return low == Extents{} && high == Extents{} && groups == 1 && kernel == Extents{1, 1, 1} && strides == Extents{1, 1, 1};
}

Extents spatial(std::span<const int64_t> extents, int64_t fill) {
  switch (extents.size()) {
    case 1: return {fill, extents[0], fill};
    case 2: return {fill, extents[0], extents[1]};
    case 3: return {extents[0], extents[1], extents[2]};
    default: fail<InternalError>("cpu", "a convolution over {} spatial axes, expected 1 to 3", extents.size());
  }
}

}  // namespace tutti::cpu
