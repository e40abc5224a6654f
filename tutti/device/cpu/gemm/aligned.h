// Memory for weights that kernels read in whole vectors.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace tutti::cpu {

// Uninitialised, 64-byte aligned.
inline std::shared_ptr<float[]> aligned_floats(int64_t size) {
  constexpr std::align_val_t kAlignment{64};
  return {new (kAlignment) float[static_cast<size_t>(size)], [](float* data) { ::operator delete[](data, kAlignment); }};
}

}  // namespace tutti::cpu
