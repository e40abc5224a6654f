// Kernels over whole rows, the last axis of [rows, length]: what a graph writes as several reductions and loops, done while the row is in
// L1. `to` may be `x`.
#pragma once

#include <cstdint>

namespace tutti::cpu {

// e^(x - max) / sum.
void softmax(const float* x, int64_t rows, int64_t length, float* to, int threads = 1);
// x - max - log(sum of e^(x - max)).
void log_softmax(const float* x, int64_t rows, int64_t length, float* to, int threads = 1);

// (x - mean) / sqrt(variance + epsilon) * scale + offset. Scale and offset have the row's length; null: 1 and 0. Without `centered` the
// mean counts as 0, which is the root mean square's norm.
struct Normalization {
  const float* scale = nullptr;
  const float* offset = nullptr;
  float epsilon = 0;
  bool centered = true;
};
void normalize(const float* x, int64_t rows, int64_t length, const Normalization& how, float* to, int threads = 1);

}  // namespace tutti::cpu
