// The nodes behind a matmul or convolution that its kernel does on the way: bias, residual, activation.
#pragma once

#include "tutti/device/cpu/candidate.h"
#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

struct EpilogueMatch {
  std::vector<int32_t> nodes;       // in order
  ValueId result;                   // the last one's, or the given value
  std::optional<ValueId> residual;  // of the result's type
  std::optional<Tensor> bias;       // [columns]
  Epilogue epilogue;                // its pointers are for the kernel to set; the bias's is set, and lives in `bias`
  std::string name;                 // "+bias+relu"
};

// What follows `value`, whose last axes are the columns. The nodes that make the bias and numbers are not part of it: what they make is
// known at compile time.
EpilogueMatch match_epilogue(const Selection& selection, ValueId value, int64_t columns);

}  // namespace tutti::cpu
