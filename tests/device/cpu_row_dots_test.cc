#include "tutti/device/cpu/gemm/row_dots.h"

#include "tests/device/cpu_contraction.h"

namespace tutti::cpu {
namespace {

TEST(cpu_row_dots, agrees_with_plain_loops_at_all_edges) {
  for (Activation activation : {Activation::none, Activation::clip, Activation::leaky_relu, Activation::sigmoid})
    for (int64_t rows : {1, 3, 4, 5, 9, 40})
      for (int64_t depth : {0, 1, 7, 8, 9, 16, 17, 33, 100})
        for (int threads : {1, 2}) {
          SCOPED_TRACE(testing::Message() << rows << "x" << depth << ", activation " << static_cast<int>(activation) << ", " << threads);
          const int64_t a_stride = depth + 2, b_stride = 3;
          const auto a = normal_floats(rows * a_stride, 1), b = normal_floats(depth * b_stride, 2), residual = normal_floats(rows, 3);
          const float bias = 0.75f;
          Epilogue epilogue{.bias = &bias, .residual = residual.data(), .residual_stride = 1, .activation = activation};
          epilogue.low = -0.5f, epilogue.high = 0.5f, epilogue.alpha = 0.25f;
          std::vector<float> c(static_cast<size_t>(rows + 1), 77.0f);
          row_dots(rows, a.data(), a_stride, PaddedColumns(b.data(), depth, b_stride), epilogue, c.data(), threads);
          for (int64_t i = 0; i < rows; ++i) {
            double sum = bias + double{residual[static_cast<size_t>(i)]}, magnitude = 1;
            for (int64_t k = 0; k < depth; ++k) {
              const double product = double{a[static_cast<size_t>(i * a_stride + k)]} * b[static_cast<size_t>(k * b_stride)];
              sum += product;
              magnitude += std::abs(product);
            }
            expect_near(c[static_cast<size_t>(i)], expected_activation(sum, epilogue), magnitude, "c", i);
          }
          ASSERT_EQ(c.back(), 77.0f);
        }
}

TEST(cpu_row_dots, a_row_gives_the_same_alone_and_among_others) {
  const int64_t rows = 23, depth = 61;
  const auto a = normal_floats(rows * depth, 1), b = normal_floats(depth, 2);
  const PaddedColumns column(b.data(), depth, 1);
  std::vector<float> all(rows), one(1);
  row_dots(rows, a.data(), depth, column, {}, all.data(), 2);
  for (int64_t i = 0; i < rows; ++i) {
    row_dots(1, a.data() + i * depth, depth, column, {}, one.data(), 1);
    EXPECT_EQ(one[0], all[static_cast<size_t>(i)]) << i;
  }
}

TEST(cpu_row_dots, nan_and_infinity_stay_in_their_row) {
  std::vector<float> a(3 * 9, 1.0f), b(9, 0.0f), c(3);
  a[9] = std::numeric_limits<float>::quiet_NaN();
  a[18] = std::numeric_limits<float>::infinity();
  row_dots(3, a.data(), 9, PaddedColumns(b.data(), 9, 1), {}, c.data(), 1);
  EXPECT_EQ(c[0], 0);
  EXPECT_TRUE(std::isnan(c[1]) && std::isnan(c[2]));
}

}  // namespace
}  // namespace tutti::cpu
