#include "tests/keras/closeness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

Tensor row(std::vector<float> values) { return Tensor::of<float>({1, static_cast<int64_t>(values.size())}, values); }

TEST(Closeness, EqualAndNearlyEqualArraysAreClose) {
  EXPECT_EQ(worst_difference(row({1, 2, 1000}), row({1, 2, 1000.05f}), {}), "");
  EXPECT_EQ(worst_difference(row({NAN, INFINITY, -INFINITY}), row({NAN, INFINITY, -INFINITY}), {}), "");
}

TEST(Closeness, TheWorstElementIsNamed) {
  std::string line = worst_difference(row({1, 2.5f, 3.25f}), row({1, 2, 3}), {.absolute = 0.25, .relative = 0});
  EXPECT_EQ(line, "1 of 3 elements differ; worst at [0, 1]: 2.5 instead of 2, 2 times what is allowed");
}

TEST(Closeness, NanAndInfinityAreOnlyCloseToThemselves) {
  for (float wrong : {NAN, INFINITY, -INFINITY}) {
    EXPECT_NE(worst_difference(row({wrong}), row({1}), {}), "") << wrong;
    EXPECT_NE(worst_difference(row({1}), row({wrong}), {}), "") << wrong;
  }
  EXPECT_NE(worst_difference(row({INFINITY}), row({-INFINITY}), {}), "");
}

TEST(Closeness, OtherShapesAreNotClose) {
  EXPECT_EQ(worst_difference(row({1, 2}), row({1, 2}).reshaped({2}), {}), "the shape is [1, 2], expected [2]");
}

}  // namespace
}  // namespace tutti
