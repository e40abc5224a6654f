// A convolution of images with known weights, and what follows it: what candidates begin with that take more than one convolution's nodes.
#pragma once

#include "tutti/device/cpu/candidates/match_epilogue.h"
#include "tutti/device/cpu/gemm/convolution.h"

namespace tutti::cpu {

struct ImageConvolution {
  int32_t node;
  ConvolutionShape shape;
  Tensor weights;
  EpilogueMatch match;

  int64_t flops() const { return 2 * shape.output_pixels() * weights.shape().elements(); }
  int64_t input_bytes() const { return 4 * shape.batch * shape.input[1] * shape.input[2] * shape.channels; }
  int64_t output_bytes() const { return 4 * shape.output_pixels() * shape.filters; }
  Convolution product(const Selection& selection) const {
    return Convolution(shape, weights.as<float>().data(), selection.packer(weights));
  }
};

// The one at this node, if it is one that no step has taken; -1: none.
std::optional<ImageConvolution> image_convolution_at(const Selection& selection, int32_t index);

}  // namespace tutti::cpu
