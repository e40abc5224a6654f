// Index operands may be of any integer dtype; unsigned 64-bit ones beyond int64 count as the largest index.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tutti/base/dtype.h"

namespace tutti::reference {

template <class T>
int64_t as_index(T value) {
  if constexpr (!std::is_integral_v<T>) {
    return 0;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
  } else {
    return static_cast<int64_t>(value);
  }
}

inline int64_t read_index(DType dtype, const std::byte* at) {
  return dispatch(dtype, [&](auto zero) {
    auto value = zero;
    std::memcpy(&value, at, sizeof value);
    return as_index(value);
  });
}

inline int64_t clamped_index(DType dtype, const std::byte* at, int64_t low, int64_t high) {
  return std::clamp(read_index(dtype, at), low, high);
}

}  // namespace tutti::reference
