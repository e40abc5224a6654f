// Softmax and norms of rows against plain loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/device/random_data.h"
#include "tutti/device/cpu/loops/rows.h"

namespace tutti::cpu {
namespace {

const int64_t lengths[] = {1, 2, 7, 8, 9, 31, 64, 1000, 20011};

// Calls check(x, y, length) for each row, with the results of one and of two threads, apart and in place.
template <class Kernel, class Check>
void for_rows(float low, float high, const Kernel& kernel, const Check& check) {
  for (int64_t length : lengths) {
    for (int threads : {1, 2}) {
      const int64_t rows = 3;
      auto x = random_floats(rows * length, low, high, 3), y = std::vector<float>(x.size()), z = x;
      kernel(x.data(), rows, length, y.data(), threads);
      kernel(z.data(), rows, length, z.data(), threads);
      ASSERT_EQ(y, z) << "in place";
      for (int64_t r = 0; r < rows; ++r) check(x.data() + r * length, y.data() + r * length, length);
    }
  }
}

// The difference is rounded to a float, as in the graph.
double sum_of_powers(const float* x, int64_t length, float most) {
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) sum += std::exp(static_cast<double>(x[i] - most));
  return sum;
}

TEST(cpu_rows, softmax) {
  for (float range : {1.0f, 30.0f, 200.0f}) {
    for_rows(-range, range, softmax, [](const float* x, const float* y, int64_t length) {
      float most = *std::max_element(x, x + length);
      double sum = sum_of_powers(x, length, most);
      for (int64_t i = 0; i < length; ++i) {
        double want = std::exp(static_cast<double>(x[i] - most)) / sum;
        ASSERT_NEAR(y[i], want, 1e-6 * want + 1e-37);
      }
    });
  }
}

TEST(cpu_rows, log_softmax) {
  for_rows(-30, 30, log_softmax, [](const float* x, const float* y, int64_t length) {
    float most = *std::max_element(x, x + length);
    double sum = sum_of_powers(x, length, most);
    for (int64_t i = 0; i < length; ++i) {
      double want = static_cast<double>(x[i] - most) - std::log(sum);
      ASSERT_NEAR(y[i], want, 1e-6 * std::fabs(want) + 1e-6);
    }
  });
}

TEST(cpu_rows, softmax_of_masked_and_of_impossible_rows) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x = {1, -1e9f, 1, -infinity, none, 1, 2, 3, infinity, 0, 0, 0}, y(12);
  softmax(x.data(), 3, 4, y.data());
  EXPECT_EQ((std::vector<float>{y.begin(), y.begin() + 4}), (std::vector<float>{0.5f, 0, 0.5f, 0}));
  for (size_t i = 4; i < 8; ++i) EXPECT_TRUE(std::isnan(y[i]));
  EXPECT_TRUE(std::isnan(y[8]));  // infinity - infinity, as in Keras
}

TEST(cpu_rows, normalize) {
  for (bool centered : {true, false}) {
    for (unsigned parts = 0; parts < 4; ++parts) {
      auto scale = random_floats(20011, 0.5f, 2, 3), offset = random_floats(20011, -1, 1, 3);
      Normalization how{.scale = (parts & 1) != 0 ? scale.data() : nullptr,
                        .offset = (parts & 2) != 0 ? offset.data() : nullptr,
                        .epsilon = 1e-3f,
                        .centered = centered};
      for_rows(
          9, 11,
          [&](const float* x, int64_t rows, int64_t length, float* to, int threads) { normalize(x, rows, length, how, to, threads); },
          [&](const float* x, const float* y, int64_t length) {
            double mean = 0, variance = 0;
            for (int64_t i = 0; i < length && centered; ++i) mean += x[i] / static_cast<double>(length);
            for (int64_t i = 0; i < length; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(length);
            for (int64_t i = 0; i < length; ++i) {
              double want = (x[i] - mean) / std::sqrt(variance + how.epsilon);
              if (how.scale != nullptr) want *= how.scale[i];
              if (how.offset != nullptr) want += how.offset[i];
              ASSERT_NEAR(y[i], want, 5e-6) << length << " " << i;
            }
          });
    }
  }
}

}  // namespace
}  // namespace tutti::cpu
