// The inner product that dot_general and convolution share: a few wide rows times a matrix of narrow ones.
#pragma once

#include <algorithm>

#include "tutti/device/reference/wide.h"

namespace tutti::reference {

// What products are summed in: double for floats; for integers, 64 bits that wrap around, and for bool a count (nonzero is true).
template <class S>
struct SumRows {
  int64_t bytes;  // of a narrow element
  void (*read)(const std::byte* from, S* to, int64_t count);
  void (*write)(const S* from, std::byte* to, int64_t count);
};

template <class T>
using Sum = std::conditional_t<is_floating<T>, double, uint64_t>;

template <class T>
SumRows<Sum<T>> sum_rows_of() {
  return {sizeof(T),
          [](const std::byte* from, Sum<T>* to, int64_t count) {
            for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Sum<T>>(widen(reinterpret_cast<const T*>(from)[i]));
          },
          [](const Sum<T>* from, std::byte* to, int64_t count) {
            for (int64_t i = 0; i < count; ++i) {
              auto& out = reinterpret_cast<T*>(to)[i];
              if constexpr (std::is_same_v<T, bool>) {
                out = from[i] != 0;
              } else {
                out = narrow<T>(static_cast<Wide<T>>(from[i]));
              }
            }
          }};
}

// Calls f with the rows of a dtype: one instance of f for floats and one for the rest.
template <class F>
auto dispatch_sums(DType dtype, F&& f) {
  if (is_float(dtype)) {
    Rows<double> rows = float_rows(dtype);
    return f(SumRows<double>{rows.bytes, rows.read, rows.write});
  }
  SumRows<uint64_t> rows{};
  dispatch(dtype, [&](auto zero) {
    if constexpr (!is_floating<decltype(zero)>) rows = sum_rows_of<decltype(zero)>();
  });
  return f(rows);
}

inline constexpr int64_t row_block = 8, column_block = 256;

// out[r, n] = sum over k of a[r, k] * b[k, n]; a: [rows, depth] dense; b and out have rows of b_stride and out_stride elements.
template <class S>
void multiply_rows(const SumRows<S>& type, const S* a, int64_t rows, int64_t depth, const std::byte* b, int64_t b_stride, int64_t columns,
                   std::byte* out, int64_t out_stride) {
  S sums[row_block][column_block];
  S wide[column_block];
  for (int64_t start = 0; start < columns; start += column_block) {
    const int64_t length = std::min(column_block, columns - start);
    for (int64_t r = 0; r < rows; ++r) std::fill_n(sums[r], length, S{});
    for (int64_t k = 0; k < depth; ++k) {
      type.read(b + (k * b_stride + start) * type.bytes, wide, length);
      for (int64_t r = 0; r < rows; ++r) {
        const S factor = a[r * depth + k];
        S* sum = sums[r];
        for (int64_t n = 0; n < length; ++n) sum[n] += factor * wide[n];
      }
    }
    for (int64_t r = 0; r < rows; ++r) type.write(sums[r], out + (r * out_stride + start) * type.bytes, length);
  }
}

}  // namespace tutti::reference
