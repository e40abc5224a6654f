// Programs for a GPU that is not here: each compiles, and takes no more kernels than when this was written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/h100_programs.h"
#include "tests/sanitized.h"
#include "tutti/keras/fit/build.h"
#include "tutti/run/train_step.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

void require_h100() {
  if (sanitized) GTEST_SKIP() << "the compiler for CUDA is not ours to check";
  try {
    open_device("cuda@h100");
  } catch (const DeviceError& e) {
    GTEST_SKIP() << e.what();
  }
}

class on_h100 : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { require_h100(); }
};

class training_on_h100 : public on_h100 {};

std::string file_of(const std::string& model) { return std::string(TUTTI_TEST_DATA "/keras_cases/") + model + "/model.keras"; }

void expect_recorded_kernels(const std::string& group, const std::string& program) {
  const auto kernels = h100_kernels(group, program);
  const auto recorded = recorded_h100_kernels(group);
  ASSERT_TRUE(kernels && recorded.contains(program));
  EXPECT_LE(*kernels, recorded.at(program));
  EXPECT_GT(*kernels, 0);
}

TEST_P(on_h100, takes_no_more_kernels_than_recorded) {
  const std::string name = GetParam();
  const size_t slash = name.find('/');
  expect_recorded_kernels(name.substr(0, slash), name.substr(slash + 1));
}

INSTANTIATE_TEST_SUITE_P(programs, on_h100,
                         testing::Values("core/dense_relu", "convolution/conv1d_relu", "quantized/dense_int4", "attention/grouped_causal",
                                         "forecasting/n_beats", "forecasting/tcn", "forecasting/wavenet", "forecasting/transformer_encoder",
                                         "forecasting/conv_then_lstm", "forecasting/lstm_to_dense", "forecasting/stacked_gru",
                                         "forecasting/bidirectional_stack", "long_applications/mobilenetv2", "long_applications/resnet50"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

TEST_F(on_h100, flops_memory_and_a_roof_are_told) {
  for (const char* name : {"convolution/conv1d_relu", "forecasting/lstm_to_dense", "long_applications/mobilenetv2"}) {
    const Explanation found = explain(load(file_of(name)), {.batch = 8, .device = "cuda@h100"});
    EXPECT_GT(found.flops, 0) << name;
    EXPECT_GT(found.memory.device, found.memory.weights) << name;
    EXPECT_LT(found.memory.device, int64_t{2} << 30) << name;
    ASSERT_TRUE(found.projected) << name;
    EXPECT_GT(*found.projected, 0) << name;
    EXPECT_LT(*found.projected, 1e-2) << name;
    EXPECT_FALSE(found.whole) << name;
  }
}

TEST_F(on_h100, members_of_an_ensemble_are_stacked_into_fewer_kernels) {
  std::vector<Model> members(8, load(file_of("core/dense_relu")));
  const Model all = ensemble(members);
  const auto kernels = [&](Arrangement way) { return explain(all, {.batch = 8, .device = "cuda@h100", .arrangement = way}).stats.kernels; };
  const Explanation chosen = explain(all, {.batch = 8, .device = "cuda@h100"});
  ASSERT_EQ(chosen.groups.size(), 1u);
  EXPECT_THAT(chosen.groups[0].reason, testing::HasSubstr("cuda@h100 does not compute, so the fewest kernels count"));
  EXPECT_LE(chosen.stats.kernels, kernels(Arrangement::merged));
  EXPECT_LE(kernels(Arrangement::stacked), 4);
}

TEST_F(on_h100, an_ensemble_of_32_has_at_most_three_kernels_more_than_one_member) {
  for (const char* name : {"core/dense_relu", "convolution/conv1d_relu", "forecasting/lstm_to_dense"}) {
    const Model member = load(file_of(name));
    const int64_t one = explain(member, {.batch = 8, .device = "cuda@h100"}).stats.kernels;
    const Model all = ensemble(std::vector<Model>(32, member));
    EXPECT_LE(explain(all, {.batch = 8, .device = "cuda@h100"}).stats.kernels, one + 3) << name;
  }
}

TEST_F(on_h100, programs_can_be_kept_and_not_run) {
  const Model model = load(file_of("core/dense_relu"));
  const auto device = open_device("cuda@h100");
  const auto program = device->compile(lower_for(*model.shared(), {.device = "cuda@h100"}, device));
  EXPECT_GT(program->executable().size(), 1000u);
  EXPECT_THROW(program->run({}, {}), DeviceError);
  EXPECT_THROW(compile(model, {.device = "cuda@h100"}), DeviceError);
  EXPECT_THROW(open_device("cuda@h1000"), InvalidArgument);
}

TEST_F(on_h100, every_target_compiles_and_tensor_cores_lower_the_roof) {
  const Model model = load(file_of("long_applications/mobilenetv2"));
  for (const char* name : {"cuda@a100", "cuda@b200", "cuda@l4"}) EXPECT_GT(explain(model, {.device = name}).projected, 0.0) << name;
  const auto projected = [&](Precision precision) {
    return *explain(model, {.batch = 64, .device = "cuda@h100", .precision = precision}).projected;
  };
  EXPECT_LT(projected(Precision::tf32), projected(Precision::float32));
}

TEST_P(training_on_h100, takes_no_more_kernels_than_recorded_for_one_and_for_32) {
  for (const char* group : {"steps", "stacked_steps"}) expect_recorded_kernels(group, GetParam());
}

// The others with ctest -C long, by h100_cases.
INSTANTIATE_TEST_SUITE_P(steps, training_on_h100,
                         testing::Values("optimizer_adam", "optimizer_sgd_momentum", "optimizer_muon", "layer_conv2d", "layer_max_pool",
                                         "layer_batch_norm_2d", "layer_lstm", "layer_embedding_mean", "layer_multi_head_attention",
                                         "residual_network"),
                         [](const auto& test) { return std::string(test.param); });

// Four products whose gradients fill a bucket each, and what is left of the biases: XLA neither divides them nor puts them together.
TEST_F(on_h100, steps_of_several_devices_have_one_all_reduce_a_bucket) {
  const keras::Model model = keras::build("dense 1100 relu; dense 1100 relu; dense 1100 relu; dense 1", {1100}, 1);
  const keras::Optimizer optimizer(keras::read_named("adam", "optimizer"), Json());
  for (const int64_t replicas : {2, 8}) {
    keras::TrainingOptions options;
    options.batch = 16;
    options.input_shapes = {{16, 1100}};
    options.targets = {{DType::f32, {16, 1}}};
    options.losses = {keras::read_named("mse", "loss")};
    options.is_part = true;
    options.replicas = replicas;
    const Graph step = train_step(model, options, optimizer).graph;
    const auto buckets = std::ranges::count_if(step.nodes(), [](const Node& node) { return node.op == Op::all_reduce; });
    EXPECT_GE(buckets, 3);
    const auto device = open_device("cuda@h100");
    CompileSettings settings;
    settings.replicas.assign(static_cast<size_t>(replicas), device);
    const Explanation found = explain(step, device, settings);
    EXPECT_EQ(std::ranges::count_if(found.steps, [](const ExplainedStep& one) { return one.kernel.starts_with("all-reduce"); }), buckets);
    EXPECT_LE(found.stats.kernels, 50);
    EXPECT_EQ(found.replicas, static_cast<size_t>(replicas));
  }
}

TEST(on_xla, a_model_runs_and_has_no_values_to_point_at) {
  try {
    open_device("xla:cpu");
  } catch (const DeviceError& e) {
    GTEST_SKIP() << e.what();
  }
  const Model model = load(file_of("core/dense_relu"));
  auto predict = compile(model, {.batch = 2, .device = "xla:cpu"}), expected = compile(model, {.batch = 2});
  const auto count = [](const Type& type) { return static_cast<size_t>(type.shape.elements()); };
  std::vector<float> x(count(predict.input_types()[0]), 0.5F), y(count(predict.output_types()[0])), wanted(y.size());
  predict(x, y);
  expected(x, wanted);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], wanted[i], 1e-5);
  EXPECT_THROW(predict.input(), Unsupported);
  EXPECT_THROW(predict.output(), Unsupported);
}

}  // namespace
}  // namespace tutti
