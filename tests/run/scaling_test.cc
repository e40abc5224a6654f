#include "tutti/run/scaling.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tutti {
namespace {

ScalingArm arm(int64_t devices, int64_t batch, double compute) {
  ScalingArm out;
  out.devices = devices;
  out.batch = batch;
  out.compute = out.fastest = out.slowest = compute;
  out.step = compute;
  return out;
}

double share(const ScalingResult& result, Loss loss) { return result.shares[static_cast<size_t>(loss)]; }

void expect_whole(const ScalingResult& result) {
  EXPECT_NEAR(std::accumulate(result.shares.begin(), result.shares.end(), 0.0), 1, 1e-9);
  for (double one : result.shares) EXPECT_GE(one, 0);
}

TEST(scaling, every_cause_is_named_by_its_own_time) {
  const ScalingArm one = arm(1, 64, 8e-3), alone = arm(1, 32, 4e-3);
  const auto with = [&](auto change) {
    ScalingArm many = arm(2, 64, 4e-3);
    change(many);
    ScalingResult out = account(one, alone, many, false, 2, 1);
    expect_whole(out);
    return out;
  };
  EXPECT_NEAR(share(with([](ScalingArm& m) { m.input = 2e-3, m.step += 2e-3; }), Loss::input), 1, 1e-9);
  const auto late = [](ScalingArm& m) { m.input = 1e-3, m.slowest_input = 2e-3, m.wait = 1e-3, m.step += 2e-3; };
  EXPECT_NEAR(share(with(late), Loss::input), 1, 1e-9) << "half of it waits at the other replica";
  EXPECT_NEAR(share(with([](ScalingArm& m) { m.host = 2e-3, m.step += 2e-3; }), Loss::dispatch), 1, 1e-9);
  EXPECT_NEAR(share(with([](ScalingArm& m) { m.exchange = 1e-3, m.step += 2e-3; }), Loss::communication), 0.5, 1e-9);
  const ScalingResult skewed = with([](ScalingArm& m) {  // replica 1 takes 2 ms longer: half of it waits at replica 0
    m.slowest = 6e-3, m.slowest_rank = 1, m.compute = 5e-3, m.wait = 1e-3, m.step = 6e-3;
  });
  EXPECT_NEAR(share(skewed, Loss::skew), 1, 1e-9);
  EXPECT_EQ(skewed.main, Loss::skew);
  EXPECT_EQ(with([](ScalingArm& m) { m.step -= 1e-3; }).lost, 0);
}

TEST(scaling, a_part_of_the_batch_that_costs_more_than_its_share_is_named) {
  const ScalingResult result = account(arm(1, 64, 8e-3), arm(1, 32, 6e-3), arm(2, 64, 6e-3), false, 2, 1);
  expect_whole(result);
  EXPECT_EQ(result.main, Loss::small_batch);
  EXPECT_NEAR(share(result, Loss::small_batch), 1, 1e-9);
}

TEST(scaling, threads_without_cores_are_named) {
  const ScalingResult result = account(arm(1, 64, 8e-3), arm(1, 16, 2e-3), arm(4, 64, 4e-3), false, 2, 1);
  expect_whole(result);
  EXPECT_EQ(result.main, Loss::oversubscription);
}

TEST(scaling, costs_are_found_again) {
  CostModel truth;
  truth.fixed = 1e-4;
  truth.by_sample = 5e-6;
  truth.cores = 64;
  truth.bytes = 1e6;
  std::vector<ScalingArm> arms;
  for (int64_t batch : {16, 64, 256}) arms.push_back(arm(1, batch, truth.fixed + truth.by_sample * static_cast<double>(batch)));
  ScalingArm two = arm(2, 64, truth.fixed + truth.by_sample * 32);
  two.exchanged_bytes = 1e6;
  two.exchange = 1e-3;
  arms.push_back(two);
  CostModel found = fit_costs(arms, 64, 1);
  EXPECT_NEAR(found.fixed, truth.fixed, 1e-9);
  EXPECT_NEAR(found.by_sample, truth.by_sample, 1e-11);
  EXPECT_NEAR(found.step(2, 64) - found.step(2, 64, 1, 1e12), 1e-3, 1e-5);
  ScalingResult result = account(arms[1], arms[0], two, false, 64, 1);
  advise(result, found);
  ASSERT_EQ(result.what_if.size(), 3u);
  EXPECT_GT(result.what_if[2].gain, 1.5) << "a link ten times as fast";
}

}  // namespace
}  // namespace tutti
