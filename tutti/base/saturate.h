// Counts that stay at the largest int64 instead of wrapping around: costs and launches of hostile or huge graphs. Not for negative numbers.
#pragma once

#include <cstdint>
#include <limits>

namespace tutti {

inline int64_t saturating_add(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}

inline int64_t saturating_multiply(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}

}  // namespace tutti
