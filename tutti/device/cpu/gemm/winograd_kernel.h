// The transforms of Winograd's F(2x2, 3x3) over channels, compiled per Highway target. Channels are a multiple of 16.
#pragma once

#include <cstdint>

#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

struct WinogradKernels {
  // pixels: 4x4, each [channels]; planes: 16, `step` floats apart, each [channels]. False when a pixel holds a NaN or an infinity.
  bool (*to_planes)(const float* const* pixels, int64_t channels, float* planes, int64_t step);
  // products: 16, `step` floats apart; y: 2x2 places, as the residuals, each [filters] or null. Filters first to last.
  void (*from_planes)(const float* products, int64_t step, int64_t first, int64_t last, const Epilogue& epilogue,
                      const float* const* residuals, float* const* y);
};

const WinogradKernels& winograd_kernels();

}  // namespace tutti::cpu
