// Memory for weights that kernels read in whole vectors.
#pragma once

#include <cstdint>
#include <new>

#include "tutti/base/memory.h"

namespace tutti::cpu {

// Uninitialised, 64-byte aligned.
inline std::shared_ptr<float[]> aligned_floats(int64_t size) {
  auto bytes = allocate_among_others(static_cast<size_t>(size) * sizeof(float));
  if (!bytes) throw std::bad_alloc();
  return {bytes, reinterpret_cast<float*>(bytes.get())};
}

// So many floats and those that fill up the last 64 bytes: what stands behind them is aligned again.
inline int64_t aligned_size(int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace tutti::cpu
