// Data and plain loops in double that the cpu device's contractions are compared with.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <random>
#include <vector>

#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

// 64-byte aligned floats, of which nothing is said until they are written: NaN.
class Floats {
 public:
  explicit Floats(int64_t size) : storage_(static_cast<size_t>(size) + 16, std::numeric_limits<float>::quiet_NaN()) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    data_ = storage_.data() + ((address + 63) / 64 * 64 - address) / sizeof(float);
  }
  float* data() { return data_; }

 private:
  std::vector<float> storage_;
  float* data_;
};

inline std::vector<float> normal_floats(int64_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = normal(generator);
  return values;
}

inline double expected_activation(double x, const Epilogue& epilogue) {
  switch (epilogue.activation) {
    case Activation::none:
    case Activation::gate: return x;
    case Activation::clip: return x < epilogue.low ? epilogue.low : x > epilogue.high ? epilogue.high : x;
    case Activation::leaky_relu: return x < 0 ? epilogue.alpha * x : x;
    case Activation::elu: return x < 0 ? epilogue.alpha * std::expm1(x) : x;
    case Activation::gelu: return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_by_tanh: return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::hard_sigmoid: return x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6;
    case Activation::hard_swish: return x < -3 ? 0 : x > 3 ? x : x * (x + 3) / 6;
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
  }
  return x;
}

// magnitude: the sum of the absolute values of what was added up.
inline void expect_near(double actual, double expected, double magnitude, const char* what, int64_t i) {
  if (std::isnan(expected) || std::isinf(expected)) {
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(actual) : actual == expected)
        << what << " at " << i << ": " << actual << ", expected " << expected;
  } else {
    EXPECT_NEAR(actual, expected, 1e-6 * magnitude + 1e-6) << what << " at " << i;
  }
}

}  // namespace tutti::cpu
