// Which batch size is used: by measured times, which are made up here.
#include "tutti/serve/programs.h"

#include <cmath>
#include <random>

#include "tests/serve/served.h"

namespace tutti::serve {
namespace {

class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest() {
    for (int64_t size : programs.sizes()) EXPECT_FALSE(programs.compile(rows, size));
  }

  // Samples a second of so many batches, 16 samples always ready, where a sample in a batch of the i-th size takes each(i) seconds. What is
  // measured is noisy: every fifth batch is interrupted for up to twice its time.
  template <class F>
  double rate(int batches, F&& each) {
    double computed = 0, samples = 0;
    std::uniform_real_distribution<double> any(0, 1);
    for (int i = 0; i < batches; ++i) {
      const auto choice = programs.choose(rows, 16);
      const auto at = std::ranges::find(programs.sizes(), choice.size) - programs.sizes().begin();
      const double seconds = each(static_cast<double>(at)) * static_cast<double>(choice.size);
      computed += seconds;
      samples += static_cast<double>(choice.samples);
      programs.add_time(rows, choice.size, seconds * (1 + 0.1 * any(random) + (any(random) < 0.2 ? 2 * any(random) : 0)));
    }
    return samples / computed;
  }

  const Rows rows = {Shape({4})};
  Programs programs{load_model(models_folder + "dense.keras"), {.batch = 16}};
  std::mt19937 random{1};
};

TEST_F(ProgramsTest, batches_that_do_not_pay_are_hardly_used) {
  const auto each = [](double size) { return 0.01 * (1 + 0.1 * size); };
  rate(100, each);
  EXPECT_GT(rate(5000, each), 0.93 / 0.01);
}

TEST_F(ProgramsTest, batches_that_pay_are_used) {
  const auto each = [](double size) { return 0.01 * (1 - 0.05 * size); };
  rate(100, each);
  EXPECT_GT(rate(5000, each), 0.93 / each(7));
}

TEST_F(ProgramsTest, what_pays_may_change) {
  const auto slow = [](double size) { return 0.01 * (1 + 0.3 * size); };
  const auto fast = [](double size) { return 0.01 / (1 + size); };
  EXPECT_GT(rate(5000, slow), 0.85 / 0.01);
  rate(40'000, fast);
  EXPECT_GT(rate(5000, fast), 0.9 / fast(7));
  rate(5000, slow);
  EXPECT_GT(rate(5000, slow), 0.85 / 0.01);
}

TEST(programs, of_open_extents_stay_within_their_memory) {
  Programs programs(load_model(models_folder + "open_time.keras"), {.batch = 4}, 1 << 20);
  const auto rows = [](int64_t steps) { return Rows{Shape({steps, 2})}; };
  const Failure failure = programs.compile(rows(1'000'000), 1);
  EXPECT_EQ(failure.kind, FailureKind::bad_request);
  EXPECT_NE(failure.message.find("at most 1048576"), std::string::npos) << failure.message;
  EXPECT_EQ(programs.choose(rows(1'000'000), 1).failure.message, failure.message);
  for (int64_t steps = 20'000; steps < 20'010; ++steps) ASSERT_FALSE(programs.compile(rows(steps), 1));  // some 400 KB each
  EXPECT_NE(programs.choose(rows(20'009), 1).program, nullptr);
  EXPECT_EQ(programs.choose(rows(20'000), 1).program, nullptr);
  // A smaller batch is computed where a larger one would not fit.
  EXPECT_TRUE(programs.compile(rows(20'009), 4));
  EXPECT_EQ(programs.choose(rows(20'009), 4).size, 1);
}

}  // namespace
}  // namespace tutti::serve
