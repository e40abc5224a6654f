#include "tutti/graph/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/graph/evaluate.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::Pointwise;

const double inf = std::numeric_limits<double>::infinity();

class ComposeTest : public testing::Test {
 protected:
  Value floats(Shape shape, std::vector<float> values) { return constant<float>(graph_, std::move(shape), values); }
  Value integers(Shape shape, std::vector<int32_t> values) { return constant<int32_t>(graph_, std::move(shape), values); }
  // 0, 1, 2, ... in a shape.
  Value counting(const Shape& shape) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(static_cast<float>(i));
    return floats(shape, values);
  }
  Graph graph_;
};

testing::Matcher<std::vector<double>> near(const std::vector<double>& expected) { return Pointwise(testing::FloatNear(1e-5), expected); }

TEST_F(ComposeTest, reductions_keep_or_drop_their_axes) {
  Value x = counting({2, 3});
  EXPECT_THAT(numbers(sum(x, {1})), ElementsAre(3, 12));
  EXPECT_EQ(sum(x, {-1}, true).shape(), Shape({2, 1}));
  EXPECT_EQ(sum(x, all_axes(x)).shape(), Shape({}));
  EXPECT_THAT(numbers(product(x, {0})), ElementsAre(0, 4, 10));
  EXPECT_THAT(numbers(mean(x, {0, 1})), ElementsAre(2.5));
  EXPECT_THAT(numbers(variance(x, {1})), near({2.0 / 3, 2.0 / 3}));
  EXPECT_THAT(numbers(reduce_max(x, {0})), ElementsAre(3, 4, 5));
  EXPECT_THROW(sum(x, {2}), InvalidArgument);
}

TEST_F(ComposeTest, half_precision_is_summed_in_float32) {
  Value x = convert(full(graph_, {DType::f32, {4096}}, 1.0), DType::f16);
  EXPECT_THAT(numbers(sum(x, {0})), ElementsAre(4096));
  EXPECT_THAT(numbers(mean(x * 8, {0})), ElementsAre(8));
}

TEST_F(ComposeTest, softmax_survives_large_and_infinite_values) {
  EXPECT_THAT(numbers(softmax(floats({3}, {1000, 1000, -1000}), {0})), near({0.5, 0.5, 0}));
  EXPECT_THAT(numbers(log_softmax(floats({2}, {1000, 0}), {0})), near({0, -1000}));
  EXPECT_THAT(numbers(logsumexp(floats({2}, {1000, 1000}), {0})), ElementsAre(DoubleNear(1000.693147, 1e-3)));
  float infinite = std::numeric_limits<float>::infinity();
  EXPECT_THAT(numbers(logsumexp(floats({2}, {-infinite, -infinite}), {0})), ElementsAre(-inf));
}

TEST_F(ComposeTest, axes_come_and_go) {
  Value x = counting({2, 3});
  EXPECT_EQ(expand_dims(x, {0, -1}).shape(), Shape({1, 2, 3, 1}));
  EXPECT_EQ(squeeze(expand_dims(x, {1}), {1}).shape(), x.shape());
  EXPECT_THROW(squeeze(x, {0}), InvalidArgument);
  EXPECT_EQ(flatten(counting({2, 3, 4}), 1).shape(), Shape({2, 12}));
  EXPECT_EQ(moveaxis(counting({2, 3, 4}), {0}, {-1}).shape(), Shape({3, 4, 2}));
  EXPECT_THAT(numbers(swapaxes(x, 0, 1)), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(numbers(stack({x, x + 6}, 1)), ElementsAre(0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11));
}

TEST_F(ComposeTest, tile_repeats_the_whole_and_repeat_each_element) {
  Value x = counting({1, 3});
  EXPECT_THAT(numbers(tile(x, {2})), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_EQ(tile(x, {2, 1, 2}).shape(), Shape({2, 1, 6}));
  EXPECT_THAT(numbers(repeat(x, 2, 1)), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_EQ(repeat(x, 0, 1).shape(), Shape({1, 0}));
}

TEST_F(ComposeTest, slices_mean_what_they_mean_in_python) {
  Value x = counting({5});
  auto slice = [&](std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step = 1) {
    return numbers(slice_axis(x, 0, start, stop, step));
  };
  EXPECT_THAT(slice({}, {}), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(slice(-2, {}), ElementsAre(3, 4));
  EXPECT_THAT(slice({}, -3), ElementsAre(0, 1));
  EXPECT_THAT(slice(3, 1), ElementsAre());
  EXPECT_THAT(slice(-100, 100, 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(slice({}, {}, -1), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(slice({}, {}, -2), ElementsAre(4, 2, 0));
  EXPECT_THAT(slice(3, 0, -2), ElementsAre(3, 1));
  EXPECT_THAT(slice(1, {}, -9), ElementsAre(1));
  EXPECT_THAT(slice(1, {}, std::numeric_limits<int64_t>::min()), ElementsAre(1));
  EXPECT_THROW(slice({}, {}, 0), InvalidArgument);
  EXPECT_THAT(numbers(index_axis(x, 0, -1)), ElementsAre(4));
  EXPECT_THROW(index_axis(x, 0, 5), InvalidArgument);
}

TEST_F(ComposeTest, roll_and_flip) {
  Value x = counting({4});
  EXPECT_THAT(numbers(roll(x, 1, 0)), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(numbers(roll(x, -5, 0)), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(numbers(flip(x, {0})), ElementsAre(3, 2, 1, 0));
}

TEST_F(ComposeTest, padding_modes_are_numpys) {
  Value x = counting({3});
  EXPECT_THAT(numbers(pad(x, PadMode::constant, {1}, {2}, 9)), ElementsAre(9, 0, 1, 2, 9, 9));
  EXPECT_THAT(numbers(pad(x, PadMode::edge, {1}, {2})), ElementsAre(0, 0, 1, 2, 2, 2));
  EXPECT_THAT(numbers(pad(x, PadMode::reflect, {2}, {5})), ElementsAre(2, 1, 0, 1, 2, 1, 0, 1, 2, 1));
  EXPECT_THAT(numbers(pad(x, PadMode::symmetric, {2}, {4})), ElementsAre(1, 0, 0, 1, 2, 2, 1, 0, 0));
  EXPECT_THROW(pad(counting({0}), PadMode::edge, {1}, {0}), InvalidArgument);
}

TEST_F(ComposeTest, matmul_takes_vectors_and_broadcasts_batches) {
  Value matrix = counting({2, 3}), vector = counting({3});
  EXPECT_THAT(numbers(matmul(matrix, vector)), ElementsAre(5, 14));
  EXPECT_THAT(numbers(matmul(counting({2}), matrix)), ElementsAre(3, 4, 5));
  EXPECT_THAT(numbers(matmul(vector, vector)), ElementsAre(5));
  EXPECT_EQ(matmul(counting({4, 1, 2, 3}), counting({5, 3, 6})).shape(), Shape({4, 5, 2, 6}));
  EXPECT_EQ(matmul(counting({4, 5, 2, 3}), counting({3})).shape(), Shape({4, 5, 2}));
  EXPECT_EQ(matmul(counting({3}), counting({4, 5, 3, 2})).shape(), Shape({4, 5, 2}));
  Value batched = matmul(counting({2, 2, 2}), counting({2, 2}));
  EXPECT_THAT(numbers(batched), ElementsAre(2, 3, 6, 11, 10, 19, 14, 27));
  EXPECT_THROW(matmul(matrix, matrix), InvalidArgument);
}

TEST_F(ComposeTest, take_counts_negative_indices_from_the_end_and_fills_outside) {
  Value x = counting({3, 2});
  EXPECT_THAT(numbers(take(x, integers({2}, {2, -3}), 0)), ElementsAre(4, 5, 0, 1));
  Value outside = take(x, integers({2}, {3, -4}), 0);
  EXPECT_THAT(numbers(is_nan(outside)), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(take(x, integers({1, 2}, {0, 1}), 1).shape(), Shape({3, 1, 2}));
  EXPECT_THAT(numbers(take(integers({2}, {7, 8}), integers({2}, {1, 2}), 0)), ElementsAre(8, std::numeric_limits<int32_t>::min()));
  EXPECT_THAT(numbers(is_nan(take(floats({0}, {}), integers({1}, {0}), 0))), ElementsAre(1));
  EXPECT_THAT(numbers(take(x, Ints{1, 1, 0}, 1)), ElementsAre(1, 1, 0, 3, 3, 2, 5, 5, 4));
  EXPECT_THROW(take(x, Ints{2}, 1), InvalidArgument);
}

TEST_F(ComposeTest, narrow_indices_reach_the_end_of_long_axes) {
  std::vector<uint8_t> index{255};
  EXPECT_THAT(numbers(take(counting({300}), constant<uint8_t>(graph_, {1}, index), 0)), ElementsAre(255));
  std::vector<int8_t> negative{-1};
  EXPECT_THAT(numbers(take(counting({300}), constant<int8_t>(graph_, {1}, negative), 0)), ElementsAre(299));
}

TEST_F(ComposeTest, take_along_axis_broadcasts_the_other_axes) {
  Value x = counting({2, 3});
  EXPECT_THAT(numbers(take_along_axis(x, integers({2, 1}, {2, -3}), 1)), ElementsAre(2, 3));
  EXPECT_THAT(numbers(take_along_axis(x, integers({1, 2}, {0, 1}), 1)), ElementsAre(0, 1, 3, 4));
  EXPECT_THROW(take_along_axis(x, integers({2}, {0, 1}), 1), InvalidArgument);
}

TEST_F(ComposeTest, one_hot_is_zero_outside) {
  Value x = integers({3}, {1, -1, 3});
  EXPECT_THAT(numbers(one_hot(x, 3, DType::f32)), ElementsAre(0, 1, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(one_hot(x, 4, DType::i32, 0).shape(), Shape({4, 3}));
}

TEST_F(ComposeTest, argmax_is_the_first_and_nan_wins) {
  Value x = floats({2, 4}, {1, 3, 3, 0, 5, std::nanf(""), 9, std::nanf("")});
  EXPECT_THAT(numbers(argmax(x, 1)), ElementsAre(1, 1));
  EXPECT_THAT(numbers(argmin(x, -1)), ElementsAre(3, 1));
  EXPECT_EQ(argmax(x, 1, true).shape(), Shape({2, 1}));
  EXPECT_THAT(numbers(argmax(integers({3}, {4, 4, 2}), 0)), ElementsAre(0));
}

TEST_F(ComposeTest, sorting_is_stable_and_top_k_begins_with_nan) {
  Value x = floats({5}, {2, 1, 2, std::nanf(""), 3});
  EXPECT_THAT(numbers(argsort(x, 0)), ElementsAre(1, 0, 2, 4, 3));
  EXPECT_THAT(numbers(top_k(x, 4).indices), ElementsAre(3, 4, 0, 2));
  EXPECT_THAT(numbers(slice_axis(top_k(x, 4).values, 0, 1, {})), ElementsAre(3, 2, 2));
  EXPECT_THROW(top_k(x, 6), InvalidArgument);
}

TEST_F(ComposeTest, running_sums_of_every_length_agree_with_a_loop) {
  for (int64_t length : {1, 2, 3, 7, 8, 9, 33}) {
    std::vector<double> forward, backward;
    for (int64_t i = 0; i < length; ++i) {
      forward.push_back(static_cast<double>(i * (i + 1) / 2));
      backward.push_back(static_cast<double>((length - 1) * length / 2 - (i - 1) * i / 2));
    }
    EXPECT_THAT(numbers(cumulative(counting({length}), "add", 0)), ElementsAreArray(forward));
    EXPECT_THAT(numbers(cumulative(counting({length}), "add", 0, true)), ElementsAreArray(backward));
  }
  EXPECT_THAT(numbers(cumulative(floats({2, 3}, {1, 2, 3, 4, 5, 6}), "multiply", 1)), ElementsAre(1, 2, 6, 4, 20, 120));
  EXPECT_THAT(numbers(cumulative(floats({4}, {1, 3, 2, 4}), "max", 0)), ElementsAre(1, 3, 3, 4));
  EXPECT_EQ(cumulative(counting({0}), "add", 0).shape(), Shape({0}));
}

}  // namespace
}  // namespace tutti
