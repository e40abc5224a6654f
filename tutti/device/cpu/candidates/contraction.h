// Candidates that multiply: products of matrices, convolutions.
#pragma once

#include "tutti/device/cpu/candidate.h"

namespace tutti::cpu {

// dot_general with a known right side, with its epilogue.
std::optional<Step> dense_matmul(const Selection& selection, int32_t node, std::string& reason);
// dot_general of two values, any batch axes.
std::optional<Step> batched_matmul(const Selection& selection, int32_t node, std::string& reason);
// convolution with a known kernel, with its epilogue.
std::optional<Step> convolution(const Selection& selection, int32_t node, std::string& reason);

}  // namespace tutti::cpu
