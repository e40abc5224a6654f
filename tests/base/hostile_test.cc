// The promise of tests/hostile.h is one that can be broken.
#include "tests/hostile.h"

#include <gtest/gtest-spi.h>

namespace tutti {

namespace {

Outcomes ignored;

TEST(hostile, a_foreign_exception_breaks_the_promise) {
  EXPECT_NONFATAL_FAILURE(expect_contained(ignored, "case 1", [] { throw std::runtime_error("foreign"); }),
                          "case 1: not an error of ours: foreign");
}

TEST(hostile, a_bug_of_ours_breaks_the_promise) {
  EXPECT_NONFATAL_FAILURE(expect_contained(ignored, "case 1", [] { fail<InternalError>("x", "oops"); }), "oops");
}

TEST(hostile, too_much_time_breaks_the_promise) {
  if (sanitized) GTEST_SKIP() << "ten seconds there";
  auto spin = [] {
    for (std::clock_t start = std::clock(); std::clock() - start < 3 * CLOCKS_PER_SEC / 2;) continue;
  };
  EXPECT_NONFATAL_FAILURE(expect_contained(ignored, "case 1", spin), "too slow");
}

TEST(hostile, too_much_memory_breaks_the_promise) {
  if (sanitized) GTEST_SKIP() << "no limit there";
  MemoryLimit limit;
  EXPECT_NONFATAL_FAILURE(expect_contained(ignored, "case 1", [] { std::vector<char> much(300 << 20); }), "more than 256 MiB");
}

}  // namespace

}  // namespace tutti
