// Numbers for tests, the same in every run.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace tutti {

inline std::vector<float> random_floats(int64_t count, float low, float high, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> real(low, high);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = real(random);
  return values;
}

}  // namespace tutti
