// explain() for programs; tests/cli/explain_test.py has what it says of real models.
#include <gtest/gtest.h>

#include "tutti/tutti.h"

namespace tutti {
namespace {

TEST(explain, steps_are_those_of_the_program_and_times_are_theirs) {
  Model model = load(TUTTI_TEST_DATA "/docs_demo/spots.keras");
  Explanation found = explain(model, {.batch = 2, .threads = 1});
  EXPECT_EQ(found.stats.kernels, compile(model, {.batch = 2, .threads = 1}).stats().kernels);
  EXPECT_EQ(found.memory.arena, found.stats.peak_memory_bytes);
  EXPECT_EQ(found.inputs[0].shape[0], 2);
  double sum = 0;
  for (const ExplainedStep& step : found.steps) {
    ASSERT_TRUE(step.seconds && step.predicted);
    EXPECT_GT(*step.predicted, 0) << step.kernel;
    sum += *step.seconds;
  }
  EXPECT_NEAR(*found.sum, sum, 1e-12);
  EXPECT_GT(*found.whole, 0);
  ASSERT_EQ(found.speeds.size(), 1u);
}

TEST(explain, a_program_that_computes_nothing_is_planned_and_not_timed) {
  Explanation found = explain(load(TUTTI_TEST_DATA "/docs_demo/spots.keras"), {.device = "null"});
  EXPECT_GT(found.flops, 0);
  EXPECT_GT(found.memory.without_reuse, found.memory.arena);
  EXPECT_FALSE(found.whole || found.sum || found.steps[0].seconds || found.steps[0].of_peak());
  EXPECT_TRUE(found.speeds.empty());
}

TEST(explain, wrong_arguments_are_errors_of_compile) {
  Model model = load(TUTTI_TEST_DATA "/docs_demo/spots.keras");
  EXPECT_THROW(explain(model, {.device = "nowhere"}), InvalidArgument);
  EXPECT_THROW(explain(model, {.input_shapes = {{1, 8, 8, 1}}}), InvalidArgument);
}

}  // namespace
}  // namespace tutti
