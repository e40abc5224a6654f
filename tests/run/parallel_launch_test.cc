// Training by several devices of one plugin: the weights of one device, and those of threads.
#include <gmock/gmock.h>

#include "tests/run/parallel_jobs.h"
#include "tests/sanitized.h"
#include "tutti/base/error.h"
#include "tutti/keras/fit/build.h"

namespace tutti {
namespace {

using testing::HasSubstr;
constexpr const char* plugin = "xla:cpu";
constexpr const char* slow = "XLA compiles slowly, and all of our code that this runs the first test runs too";

class parallel_launch : public testing::Test {
 protected:
  void SetUp() override {
    try {
      open_device(plugin);
    } catch (const DeviceError& e) {
      GTEST_SKIP() << e.what();
    }
  }

  // Batches of 16 on three devices are 6, 5 and 5 samples: a program of each device, and one launch for the update.
  void expect_as_one_device(const SmallModel& model, const std::vector<std::pair<int64_t, int64_t>>& divisions, bool synchronizes = false) {
    const FitJob job = job_of(scratch_, model);
    const Trained one = train(job, 1, 1, synchronizes);
    for (const auto& [replicas, small] : divisions)
      expect_near(one, train(job, replicas, small, synchronizes, plugin), 1e-5,
                  fmt::format("{} x {}, {} small batches", model.name, replicas, small));
  }

  const Scratch scratch_;
};

TEST_F(parallel_launch, any_number_of_devices_and_small_batches_gives_the_weights_of_one) {
  expect_as_one_device(models()[0], {{2, 1}, {3, 1}, {4, 2}});
}

TEST_F(parallel_launch, dropout_weights_of_samples_and_clipping_are_those_of_one_device) {
  if (sanitized) GTEST_SKIP() << slow;
  expect_as_one_device(models()[1], {{2, 1}});
  expect_as_one_device(models()[2], {{3, 1}});
}

// 16 samples that have to meet in the middle of the step cannot be divided by three: two devices have them, the third computes for nothing.
TEST_F(parallel_launch, masks_divide_by_the_sums_of_the_whole_batch) {
  const Json masked = keras::Sequential({6}, DType::i32)
                          .add("Embedding", {{"input_dim", 5}, {"output_dim", 4}, {"mask_zero", true}})
                          .add("LSTM", {{"units", 5}, {"return_sequences", true}})
                          .dense(4, "softmax")
                          .config();
  FitJob job = job_of(scratch_, {"masked", "", {6}, momentum, false, masked});
  Tensor x(DType::i32, {45, 6}), y(DType::i32, {45, 6});
  for (size_t i = 0; i < x.as<int32_t>().size(); ++i) {
    x.as<int32_t>()[i] = static_cast<int32_t>(i % 6 < 1 + i / 6 % 6 ? 1 + i * 7 % 4 : 0);
    y.as<int32_t>()[i] = static_cast<int32_t>(i * 5 % 4);
  }
  write_npy(job.x.file, x);
  write_npy(job.y.file, y);
  const Trained one = train(job, 1, 1);
  expect_near(one, train(job, 3, 1, false, plugin), 1e-5, "3 devices");
}

TEST_F(parallel_launch, batch_normalization_is_that_of_threads_and_by_the_whole_batch_that_of_one_device) {
  if (sanitized) GTEST_SKIP() << slow;
  const SmallModel model{"normalized", "dense 16; batch_normalization; activation tanh; dense 4 softmax", {9}, momentum};
  const FitJob job = job_of(scratch_, model);
  const Trained one = train(job, 1, 1, true);
  expect_near(one, train(job, 2, 1, true, plugin), 2e-5, "by the whole batch");
  // Statistics of five samples make roundings larger: the reference device is as far from both in what the optimizer keeps.
  expect_near(train(job, 3, 1), train(job, 3, 1, false, plugin), 1e-4, "by parts");
}

TEST_F(parallel_launch, early_stopping_best_weights_a_plateau_and_a_loss_that_is_not_finite_are_those_of_one_device) {
  if (sanitized) GTEST_SKIP() << slow;
  const FitJob job = stopping_early(scratch_);
  const Trained one = train(job, 1, 1);
  EXPECT_LT(std::ssize(one.history), job.epochs);
  expect_near(one, train(job, 2, 1, false, plugin), 1e-5, "2 devices");
  EXPECT_THAT(error_of(overflowing(scratch_), plugin), HasSubstr("the loss of step"));
}

TEST_F(parallel_launch, more_devices_than_samples_are_of_no_harm) {
  FitJob job = job_of(scratch_, models()[0]);
  job.batch_size = 3;
  job.epochs = 2;
  expect_near(train(job, 1, 1), train(job, 4, 1, false, plugin), 1e-5, "4 devices, 3 samples");
}

TEST_F(parallel_launch, replicas_are_of_one_plugin_and_of_devices_that_are_there) {
  EXPECT_EQ(parse_devices("2", plugin), (std::vector<std::string>{"xla:cpu:0", "xla:cpu:1"}));
  EXPECT_EQ(parse_devices("2", "xla:cpu:1"), (std::vector<std::string>{"xla:cpu:1", "xla:cpu:2"}));
  EXPECT_EQ(parse_devices("xla:cpu:2,xla:cpu:0", "cpu"), (std::vector<std::string>{"xla:cpu:2", "xla:cpu:0"}));
  EXPECT_THROW(parse_devices("xla:cpu:0,cuda:1", plugin), InvalidArgument);
  EXPECT_THROW(parse_devices("xla:cpu,xla:cpu:0", plugin), InvalidArgument);
  try {
    open_device("xla:cpu:99");
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_THAT(e.what(), HasSubstr("there is no device 99: the plugin has 4, xla:cpu:0 to xla:cpu:3"));
  }
}

}  // namespace
}  // namespace tutti
