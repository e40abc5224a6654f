// Candidates that multiply: products of matrices, convolutions.
#pragma once

#include "tutti/device/cpu/candidate.h"
#include "tutti/device/cpu/gemm/convolution_shape.h"

namespace tutti::cpu {

// dot_general with a known right side, with its epilogue.
std::optional<Step> dense_matmul(const Selection& selection, int32_t node, std::string& reason);
// dot_general of two values, any batch axes.
std::optional<Step> batched_matmul(const Selection& selection, int32_t node, std::string& reason);
// A depthwise convolution with the 1x1 convolutions before and after it, and the epilogues of each, where what lies between them is large.
std::optional<Step> separable_convolution(const Selection& selection, int32_t node, std::string& reason);
// A convolution of images with its epilogue and the pooling behind it, whose windows do not overlap: only what they read is made.
std::optional<Step> pooled_convolution(const Selection& selection, int32_t node, std::string& reason);
// convolution with a known kernel, with its epilogue.
std::optional<Step> convolution(const Selection& selection, int32_t node, std::string& reason);

// Why no kernel takes this convolution; empty when one may.
std::string_view refuses_convolution(const Selection& selection, const Node& node);
// Of a convolution of x; what stands between its pixels (lhs_dilation) is part of x.
ConvolutionShape convolution_shape(const Node& node, const Shape& x, const Shape& kernel);

}  // namespace tutti::cpu
