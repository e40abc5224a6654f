#include "tutti/device/reference/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tutti::reference {
namespace {

// Every element by its index, one after the other.
template <class T>
std::vector<T> copied(const std::vector<T>& from, size_t size, const Ints& extents, const Ints& from_strides, const Ints& to_strides) {
  std::vector<T> to(size);
  int64_t count = std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, source = 0, target = 0;
    for (size_t axis = extents.size(); axis-- > 0; rest /= extents[axis]) {
      source += rest % extents[axis] * from_strides[axis];
      target += rest % extents[axis] * to_strides[axis];
    }
    to[static_cast<size_t>(target)] = from[static_cast<size_t>(source)];
  }
  return to;
}

template <class T>
void expect_permutations(const Shape& shape) {
  std::vector<T> from(static_cast<size_t>(shape.elements()));
  std::iota(from.begin(), from.end(), T{1});
  Ints permutation(static_cast<size_t>(shape.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  do {
    Ints extents, strides;
    for (int64_t axis : permutation) {
      extents.push_back(shape[axis]);
      strides.push_back(shape.strides()[static_cast<size_t>(axis)]);
    }
    std::vector<T> to(from.size());
    StridedCopy copy(sizeof(T), extents, strides, Shape(extents).strides());
    copy(reinterpret_cast<const std::byte*>(from.data()), reinterpret_cast<std::byte*>(to.data()));
    const std::vector<T> expected = copied(from, to.size(), extents, strides, Shape(extents).strides());
    ASSERT_EQ(to, expected) << to_string(shape) << to_string(permutation);
    std::fill(to.begin(), to.end(), T{0});
    for (int64_t begin = copy.extent(), end = begin; end > 0; end = begin) {
      begin = end / 2;
      copy.piece(reinterpret_cast<const std::byte*>(from.data()), reinterpret_cast<std::byte*>(to.data()), begin, end);
    }
    ASSERT_EQ(to, expected) << "in pieces: " << to_string(shape) << to_string(permutation);
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

TEST(strided_copy, permutes_axes_of_elements_of_any_size) {
  for (const Shape& shape : {Shape{1}, Shape{17, 33}, Shape{3, 16, 5}, Shape{2, 18, 3, 20}, Shape{2, 3, 4, 5, 6}}) {
    expect_permutations<uint8_t>(shape);
    expect_permutations<uint16_t>(shape);
    expect_permutations<uint32_t>(shape);
    expect_permutations<uint64_t>(shape);
  }
}

TEST(strided_copy, repeats_and_walks_backwards) {
  std::vector<uint32_t> from(600), to(600);
  std::iota(from.begin(), from.end(), 1u);
  const auto run = [&](const Ints& extents, const Ints& strides, int64_t start) {
    std::fill(to.begin(), to.end(), 0);
    StridedCopy copy(4, extents, strides, Shape(extents).strides());
    copy(reinterpret_cast<const std::byte*>(from.data() + start), reinterpret_cast<std::byte*>(to.data()));
    // The same walk, counted from the first element that it touches.
    std::vector<uint32_t> seen(from.begin() + start, from.end());
    Ints positive = strides;
    for (size_t i = 0; i < strides.size(); ++i) {
      if (strides[i] >= 0) continue;
      positive[i] = -strides[i];
      seen = std::vector<uint32_t>(from.begin() + start + strides[i] * (extents[i] - 1), from.end());
    }
    auto want = copied(seen, to.size(), extents, positive, Shape(extents).strides());
    for (int64_t i = 0, inner = extents.back(); strides.back() < 0 && i < Shape(extents).elements(); i += inner)
      std::reverse(want.begin() + i, want.begin() + i + inner);
    EXPECT_EQ(to, want) << to_string(extents) << to_string(strides);
  };
  run({600}, {0}, 5);
  run({7, 30}, {0, 1}, 3);
  run({7, 30}, {1, 0}, 3);
  run({20, 30}, {1, 20}, 0);
  run({10, 3, 20}, {1, 0, 10}, 0);
  run({5, 60}, {60, -1}, 59);
  run({0, 5}, {5, 1}, 0);
}

}  // namespace
}  // namespace tutti::reference
