// tutti::fit as a library: data and models in memory, checkpoints by time, what is told meanwhile.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <thread>

#include "tests/scratch.h"
#include "tutti/base/denormals.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

Tensor floats(int64_t rows, int64_t columns, uint32_t seed) {
  Tensor out(DType::f32, {rows, columns});
  for (float& x : out.as<float>()) {
    seed = seed * 1664525 + 1013904223;
    x = static_cast<float>(seed >> 8) / (1 << 23) - 1;
  }
  return out;
}

// y = the sum of a row.
FitJob summing_job(const std::string& name, int64_t seed) {
  FitJob job;
  job.name = name;
  job.architecture = Sequential({3}).dense(4, "tanh").dropout(0.1).dense(1).config();
  const Tensor x = floats(60, 3, static_cast<uint32_t>(seed));
  Tensor y(DType::f32, {60, 1});
  for (size_t i = 0; i < 60; ++i) y.as<float>()[i] = std::accumulate(&x.as<float>()[3 * i], &x.as<float>()[3 * i] + 3, 0.0f);
  job.x = x;
  job.y = y;
  job.loss = "mse";
  job.optimizer = JsonMembers{{"name", "adam"}, {"learning_rate", 0.02}};
  job.epochs = 80;
  job.batch_size = 16;
  job.seed = seed;
  return job;
}

TEST(fit, jobs_in_memory_give_models_that_predict) {
  const std::vector<FitJob> jobs{summing_job("a", 1), summing_job("b", 2)};
  const FitReport done = fit(jobs);
  ASSERT_EQ(done.jobs.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const FitResult& result = done.jobs[i];
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(result.stopped_because, "epochs");
    EXPECT_EQ(result.history.size(), 80u);
    EXPECT_LT(result.loss, 0.3 * result.history[0][0]);
    const Tensor predicted = Model(result.model).predict({jobs[i].x.arrays[0]})[0];
    double error = 0;
    for (size_t k = 0; k < 60; ++k) error += std::pow(predicted.as<float>()[k] - jobs[i].y.arrays[0].as<float>()[k], 2) / 60;
    EXPECT_LT(error, 0.2);
  }
}

TEST(fit, a_job_that_fails_has_its_reason_and_the_others_go_on) {
  std::vector<FitJob> jobs{summing_job("a", 1), summing_job("b", 2), summing_job("c", 3)};
  Tensor bad = floats(60, 3, 5);
  bad.as<float>()[100] = NAN;
  jobs[0].x = bad;
  jobs[2].y = floats(59, 1, 1);
  const FitReport done = fit(jobs);
  EXPECT_NE(done.jobs[0].error.find("the loss of step"), std::string::npos) << done.jobs[0].error;
  EXPECT_EQ(done.jobs[0].model, nullptr);
  EXPECT_EQ(done.jobs[1].error, "");
  EXPECT_NE(done.jobs[2].error.find("x ('') has 60 samples"), std::string::npos) << done.jobs[2].error;
}

TEST(fit, checkpoints_by_time_are_gone_on_with_bit_for_bit) {
  const Scratch scratch;
  std::vector<FitJob> jobs{summing_job("a", 1), summing_job("b", 2), summing_job("c", 3)};
  for (FitJob& job : jobs) job.epochs = 3000;
  FitOptions options;
  options.plan = FitArrangement::stacked;
  options.threads = 1;
  options.folder = scratch.path("whole");
  const FitReport whole = fit(jobs, options);
  options.folder = scratch.path("parts");
  options.checkpoint_minutes = 1e-4;  // six milliseconds
  std::atomic<bool> stop = false;
  std::jthread watcher([&](const std::stop_token& done) {
    while (!done.stop_requested() && !std::filesystem::exists(scratch.path("parts/c/checkpoint"))) std::this_thread::yield();
    stop = true;
  });
  const FitReport part = fit(
      jobs, options, [](const FitResult&) {}, stop);
  watcher.request_stop();
  options.resume = true;
  const FitReport rest = fit(jobs, options);
  for (size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(part.jobs[i].stopped_because, "interrupted");
    EXPECT_GT(part.jobs[i].steps, 0);
    EXPECT_EQ(rest.jobs[i].steps, whole.jobs[i].steps);
    const auto trained = [&](const std::string& out) { return keras::load(scratch.path(out + "/" + jobs[i].name + "/model.keras")); };
    const keras::Model a = trained("whole"), b = trained("parts");
    const auto ours = a.variables().flatten(), theirs = b.variables().flatten();
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t k = 0; k < ours.size(); ++k)
      EXPECT_TRUE(std::ranges::equal(ours[k]->value.bytes(), theirs[k]->value.bytes())) << ours[k]->path;
    EXPECT_FALSE(std::filesystem::exists(scratch.path("parts/" + jobs[i].name + "/checkpoint")));
  }
}

// The gradient is 1e-40 and the rate 1e38: a step that read the gradient would change the weight.
TEST(fit, denormals_count_as_zero_in_training_and_nowhere_else) {
  FitJob job;
  job.name = "a";
  job.architecture = Sequential({1}).add("Dense", {{"units", 1}, {"use_bias", false}}).config();
  job.x = Tensor::of<float>({8, 1}, std::vector<float>(8, 1e-20f));
  job.y = Tensor::of<float>({8, 1}, std::vector<float>(8, 0.0f));
  job.loss = "mse";
  job.optimizer = JsonMembers{{"name", "sgd"}, {"learning_rate", 1e38}};
  job.batch_size = 8;
  const auto first = keras::build(job.architecture, static_cast<uint64_t>(job.seed));
  const FitReport done = fit({job});
  ASSERT_EQ(done.jobs[0].error, "");
  EXPECT_EQ(Model(done.jobs[0].model).predict({job.x.arrays[0]})[0].as<float>()[0],
            first.variables().flatten()[0]->value.as<float>()[0] * 1e-20f);
  EXPECT_FALSE(FlushDenormals::is_on());
  job.x.arrays[0].as<float>()[0] = 1e-39f;
  EXPECT_NE(Model(done.jobs[0].model).predict({job.x.arrays[0]})[0].as<float>()[0], 0);
}

TEST(fit, who_asks_is_told_how_far_jobs_are) {
  std::vector<FitJob> jobs{summing_job("a", 1), summing_job("b", 2)};
  for (FitJob& job : jobs) job.epochs = 1'000'000;
  std::atomic<bool> stop = false;
  FitOptions options;
  options.progress = [&](const FitProgress& progress) {
    EXPECT_EQ(progress.jobs, 2u);
    EXPECT_EQ(progress.done + progress.failed, 0u);
    EXPECT_EQ(progress.expected_steps, 2 * 4 * 1'000'000);
    ASSERT_EQ(progress.running.size(), 2u);
    EXPECT_EQ(progress.running[0].name, "a");
    EXPECT_TRUE(std::isfinite(progress.running[0].loss));
    if (progress.running[0].steps > 0 && progress.running[1].steps > 0) stop = true;
  };
  const FitReport done = fit(
      jobs, options, [](const FitResult&) {}, stop);
  EXPECT_EQ(done.jobs[0].stopped_because, "interrupted");
  EXPECT_NE(done.jobs[0].model, nullptr);  // as far as it came
}

TEST(fit, models_are_made_layer_by_layer) {
  const keras::Model model = keras::build(Sequential({8, 8, 1})
                                              .conv2d(3, 3, "relu")
                                              .max_pool(2)
                                              .flatten()
                                              .add("LayerNormalization", {{"epsilon", 1e-4}})
                                              .dense(5, "softmax")
                                              .config(),
                                          1);
  const Graph graph = model.lower({2, {}, nullptr});
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0].value).shape), "[2, 5]");
  EXPECT_EQ(keras::build(Sequential({6}).embedding(10, 4).lstm(3).config(), 1).inputs()[0].dtype, DType::i32);
  EXPECT_THROW(keras::build(Sequential({2}).add("Dence", {{"units", 3}}).config(), 1), Error);
  EXPECT_THROW(Sequential({2}).add("Dense", {{"units", 3}, {"kernel_initializer", "zeros"}}), Unsupported);
}

}  // namespace
}  // namespace tutti
