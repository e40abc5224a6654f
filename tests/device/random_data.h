// Numbers for tests, the same in every run.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "tutti/base/tensor.h"

namespace tutti {

inline std::vector<float> random_floats(int64_t count, float low, float high, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> real(low, high);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = real(random);
  return values;
}

// Between -3 and 3, integers between -15 and 15.
inline Tensor random_tensor(const Type& type, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> real(-3, 3);
  Tensor tensor(type);
  dispatch(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (T& x : tensor.as<T>()) {
      double value = real(random);
      x = convert_element<T>(std::is_integral_v<T> ? std::floor(value * 5) : value);
    }
  });
  return tensor;
}

}  // namespace tutti
