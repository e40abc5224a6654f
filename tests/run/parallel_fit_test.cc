// Training by several replicas: the same weights as one device gives, whatever their number, and the same bits in every run.
#include "tutti/run/parallel_fit.h"

#include <gtest/gtest.h>

#include "tests/run/parallel_jobs.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

TEST(parallel_fit, any_number_of_replicas_and_small_batches_give_the_same_weights) {
  const Scratch scratch;
  for (const SmallModel& model : models()) {
    const FitJob job = job_of(scratch, model);
    const Trained one = train(job, 1, 1);
    for (int64_t replicas : {2, 3, 4, 8}) expect_near(one, train(job, replicas, 1), 1e-5, fmt::format("{} x {}", model.name, replicas));
    for (int64_t small : {2, 4}) {
      expect_near(one, train(job, 1, small), 1e-5, fmt::format("{}, {} small batches", model.name, small));
      expect_near(one, train(job, 2, small), 1e-5, fmt::format("{} x 2, {} small batches", model.name, small));
    }
  }
}

TEST(parallel_fit, replicas_are_equal_bit_for_bit_in_every_run) {
  const Scratch scratch;
  const FitJob job = job_of(scratch, models()[2]);
  const Trained first = train(job, 3, 1), again = train(job, 3, 1);
  for (size_t i = 0; i < first.values.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(first.values[i].bytes(), again.values[i].bytes())) << first.names[i];
  EXPECT_EQ(first.history, again.history);
}

// The states of programs that were compiled with them.
class NamedStates : public StateValues {
 public:
  StateBuffers buffers;
  std::vector<std::string> names;
  Tensor read(size_t i) const override {
    Tensor out(buffers.at(names[i])->type());
    std::ranges::copy(buffers.at(names[i])->host(), out.bytes().begin());
    return out;
  }
  void write(size_t, const Tensor&) override {}
};

TEST(parallel_fit, one_replica_is_what_fit_does_alone) {
  const Scratch scratch;
  const FitJob job = job_of(scratch, models()[2]);
  Trainer trainer(job);
  NamedStates states;
  auto step = std::make_shared<StepGraph>(trainer.graph({true, 16}));
  for (const Node* state : step->graph.parameters(Graph::Role::state)) states.names.push_back(state->attributes.text("name"));
  trainer.describe(step, states.names);
  trainer.attach(&states);
  const auto device = open_device("cpu");
  std::map<StepKind, std::unique_ptr<Program>> programs;
  while (!trainer.is_done()) {
    auto& program = programs[trainer.next().kind];
    if (program == nullptr) {
      CompileSettings settings;
      settings.states = &states.buffers;
      program = device->compile(trainer.graph(trainer.next().kind).graph, settings);
    }
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<Buffer*> inputs, outputs;
    for (const Type& type : program->input_types()) inputs.push_back(buffers.emplace_back(device->allocate(type)).get());
    for (const Type& type : program->output_types()) outputs.push_back(buffers.emplace_back(device->allocate(type)).get());
    for (size_t i = 0; i < inputs.size(); ++i) trainer.fill(i, inputs[i]->host());
    program->run(inputs, outputs);
    std::vector<std::span<const float>> results;
    for (Buffer* output : outputs) results.emplace_back(reinterpret_cast<const float*>(output->host().data()), output->host().size() / 4);
    trainer.take(results);
  }
  const Trained parallel = train(job, 1, 1);
  ASSERT_EQ(parallel.names, states.names);
  for (size_t i = 0; i < states.names.size(); ++i) EXPECT_LE(difference(parallel.values[i], states.read(i)), 1e-5) << states.names[i];
}

TEST(parallel_fit, batch_normalization_by_the_whole_batch_equals_one_device) {
  const Scratch scratch;
  const SmallModel model{"normalized", "dense 16; batch_normalization; activation tanh; dense 4 softmax", {9}, momentum};
  const FitJob job = job_of(scratch, model);
  const Trained one = train(job, 1, 1, true);
  for (int64_t replicas : {2, 3}) expect_near(one, train(job, replicas, 1, true), 2e-5, fmt::format("{} replicas", replicas));
  // By each device's own part it is another model, whose statistics are still those of all replicas.
  const Trained local = train(job, 2, 1, false);
  double apart = 0;
  for (size_t i = 0; i < one.values.size(); ++i) apart = std::max(apart, difference(one.values[i], local.values[i]));
  EXPECT_GT(apart, 1e-4);
  EXPECT_THROW(train(job, 1, 2, true), Unsupported);
}

TEST(parallel_fit, more_replicas_than_samples_are_of_no_harm) {
  const Scratch scratch;
  FitJob job = job_of(scratch, models()[0]);
  job.batch_size = 3;
  job.epochs = 2;
  expect_near(train(job, 1, 1), train(job, 8, 1), 1e-5, "8 replicas of 3 samples");
}

TEST(parallel_fit, a_loss_that_is_not_finite_ends_it_and_says_so) {
  const Scratch scratch;
  FitJob job = job_of(scratch, models()[0]);
  job.build = "dense 8; dense 1";
  job.loss = "mse";
  job.optimizer = JsonMembers{{"name", "sgd"}, {"learning_rate", 1e30}};
  ParallelOptions options;
  options.threads = 1;
  const ParallelPlan plan = plan_parallel(job, options, 2, 2);
  Trainer trainer(job);
  ParallelFit fit(trainer, {open_device("cpu")}, plan, options);
  std::string said;
  fit.run([&](Trainer&, const std::string& error) {
    said = error;
    return true;
  });
  EXPECT_NE(said.find("the loss of step"), std::string::npos) << said;
}

TEST(parallel_fit, plans_say_how_a_batch_is_divided) {
  FitJob job;
  job.batch_size = 32;
  ParallelOptions options;
  options.per_device_batch = 16;
  options.accumulate = 2;
  options.lr_scale = "linear";
  options.warmup_steps = 10;
  const ParallelPlan plan = plan_parallel(job, options, 4, 8);
  EXPECT_EQ(plan.global_batch, 128);
  EXPECT_EQ(plan.rate_factor, 4);
  EXPECT_EQ(plan.threads, 2);
  EXPECT_EQ(plan.text(),
            "global batch 128 = 4 devices x 16 samples x 2 small batches, 2 threads each, learning rate x 4 after 10 steps of warm-up");
  options.global_batch = 100;
  EXPECT_THROW(plan_parallel(job, options, 4, 8), InvalidArgument);
  EXPECT_EQ(parse_devices("3", "cpu"), std::vector<std::string>(3, "cpu"));
  EXPECT_EQ(parse_devices("cpu:0,cpu:1", "cpu"), std::vector<std::string>(2, "cpu"));
  EXPECT_THROW(parse_devices("cpu:0,cpu:0", "cpu"), InvalidArgument);
  EXPECT_THROW(parse_devices("cpu:0,reference", "cpu"), InvalidArgument);
  EXPECT_THROW(parse_devices("0", "cpu"), InvalidArgument);
}

}  // namespace
}  // namespace tutti
