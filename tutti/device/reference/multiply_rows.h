// The inner product that dot_general and convolution share: a few wide rows times a matrix of narrow ones.
#pragma once

#include <algorithm>

#include "tutti/device/reference/wide.h"

namespace tutti::reference {

// What products are summed in: bool counts (nonzero is true), integers wrap around.
template <class T>
using Sum = std::conditional_t<is_floating<T>, double, uint64_t>;

template <class T>
Sum<T> to_sum(T x) {
  return static_cast<Sum<T>>(widen(x));
}

template <class T>
T from_sum(Sum<T> sum) {
  if constexpr (std::is_same_v<T, bool>) {
    return sum != 0;
  } else {
    return narrow<T>(static_cast<Wide<T>>(sum));
  }
}

inline constexpr int64_t row_block = 8, column_block = 256;

// out[r, n] = sum over k of a[r, k] * b[k, n]; a: [rows, depth] dense; b and out have rows of b_stride and out_stride elements.
template <class T>
void multiply_rows(const Sum<T>* a, int64_t rows, int64_t depth, const T* b, int64_t b_stride, int64_t columns, T* out,
                   int64_t out_stride) {
  Sum<T> sums[row_block][column_block];
  Sum<T> wide[column_block];
  for (int64_t start = 0; start < columns; start += column_block) {
    const int64_t length = std::min(column_block, columns - start);
    for (int64_t r = 0; r < rows; ++r) std::fill_n(sums[r], length, Sum<T>{});
    for (int64_t k = 0; k < depth; ++k) {
      const T* row = b + k * b_stride + start;
      for (int64_t n = 0; n < length; ++n) wide[n] = to_sum(row[n]);
      for (int64_t r = 0; r < rows; ++r) {
        const Sum<T> factor = a[r * depth + k];
        Sum<T>* sum = sums[r];
        for (int64_t n = 0; n < length; ++n) sum[n] += factor * wide[n];
      }
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t n = 0; n < length; ++n) out[r * out_stride + start + n] = from_sum<T>(sums[r][n]);
  }
}

}  // namespace tutti::reference
