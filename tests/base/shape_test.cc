#include "tutti/base/shape.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti {

namespace {

TEST(shape, elements_and_strides_are_row_major) {
  Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_EQ(shape.strides(), (Ints{12, 4, 1}));
  EXPECT_EQ(to_string(shape), "[2, 3, 4]");
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{5, 0}).elements(), 0);
}

TEST(shape, hostile_extents_are_errors_and_not_small_numbers) {
  EXPECT_THROW((Shape{-1}), InvalidArgument);
  EXPECT_THROW((Shape{int64_t{1} << 32, int64_t{1} << 32}), InvalidArgument);
  EXPECT_THROW((Shape{int64_t{1} << 62, 4}), InvalidArgument);
  EXPECT_THROW((Shape{0, int64_t{1} << 62}), InvalidArgument);
  EXPECT_THROW(Shape(Ints(33, 1)), InvalidArgument);
  EXPECT_EQ((Shape{int64_t{1} << 48}).elements(), int64_t{1} << 48);
}

TEST(shape, broadcasting_follows_numpy) {
  EXPECT_EQ(broadcast({2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast({}, {3}), (Shape{3}));
  EXPECT_EQ(broadcast({0}, {1}), (Shape{0}));
  EXPECT_THROW(broadcast({2}, {3}), InvalidArgument);
}

}  // namespace

}  // namespace tutti
