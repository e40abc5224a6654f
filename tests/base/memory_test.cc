#include "tutti/base/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/sanitized.h"

namespace tutti {
namespace {

constexpr size_t mebibyte = size_t{1} << 20;
const std::vector<size_t> sizes = {0,
                                   1,
                                   63,
                                   64,
                                   65 * 1024,
                                   mebibyte,
                                   mebibyte + 1,
                                   2 * mebibyte - 1,
                                   2 * mebibyte,
                                   2 * mebibyte + 1,
                                   4'000'000,
                                   5 * mebibyte,
                                   17 * mebibyte - 3};

TEST(memory, is_aligned_and_can_be_written_to_its_end) {
  for (auto make : {allocate, allocate_among_others})
    for (size_t size : sizes) {
      auto bytes = make(size);
      ASSERT_NE(bytes, nullptr) << size;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.get()) % 64, 0u) << size;
      std::memset(bytes.get(), 1, size);
    }
}

TEST(memory, those_among_others_are_apart_and_outlive_each_other) {
  std::vector<std::shared_ptr<std::byte>> all;
  for (int round = 0; round < 12; ++round)
    for (size_t size : sizes) {
      all.push_back(allocate_among_others(size));
      std::memset(all.back().get(), static_cast<int>(all.size()) % 256, size);
    }
  for (size_t i = 0; i < all.size(); i += 2) all[i].reset();
  for (size_t i = 1; i < all.size(); i += 2)
    for (size_t k = 0, size = sizes[i % sizes.size()]; k < size; k += 1 + size / 1000)
      ASSERT_EQ(std::to_integer<int>(all[i].get()[k]), static_cast<int>(i + 1) % 256) << i << " " << k;
}

TEST(memory, too_much_is_nothing) {
  if (sanitized) GTEST_SKIP() << "sanitizers end the process instead";
  EXPECT_EQ(allocate(SIZE_MAX / 2), nullptr);
}

}  // namespace
}  // namespace tutti
