// Bytes as kernels and programs handle them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tutti {

// Nothing may be copied from nowhere.
inline void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes != 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

inline const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
inline float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

}  // namespace tutti
