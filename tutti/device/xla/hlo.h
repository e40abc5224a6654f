// What XLA made of a program: the kernels of an optimized HloModuleProto.
#pragma once

#include <string_view>
#include <vector>

#include "tutti/device/report.h"

namespace tutti::xla {

struct HloKernels {
  std::vector<StepReport> steps;  // in order; a loop's step comes before those of its body
  int64_t launches = 0;           // a run
  int64_t fusions = 0;            // kernels that XLA made of several ops
  int64_t library_calls = 0;      // kernels of cuBLAS, cuDNN, oneDNN and the like
};

// `inputs`: how many parameters of the program are inputs; what else it reads is weights. Throws DeviceError where the bytes are no module.
HloKernels kernels_of(std::string_view module, size_t inputs);

}  // namespace tutti::xla
