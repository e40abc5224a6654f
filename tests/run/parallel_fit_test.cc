// Training by several replicas: the same weights as one device gives, whatever their number, and the same bits in every run.
#include "tutti/run/parallel_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/scratch.h"
#include "tutti/base/error.h"
#include "tutti/data/npy.h"

namespace tutti {
namespace {

Tensor wave_tensor(const Shape& shape, double step) {
  Tensor out(DType::f32, shape);
  double at = 0.3;
  for (float& value : out.as<float>()) value = static_cast<float>(std::sin(at += step));
  return out;
}

Tensor classes(int64_t samples, int64_t count) {
  Tensor out(DType::i32, {samples});
  for (int64_t i = 0; i < samples; ++i) out.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>((i * 7 + i / 3) % count);
  return out;
}

struct Model {
  std::string name, layers;
  Ints input;
  Json optimizer;
  bool weighted = false;
};

// 45 samples: the last of each pass's batches of 16 has 13.
FitJob job_of(const Scratch& scratch, const Model& model) {
  constexpr int64_t samples = 45;
  FitJob job;
  job.name = model.name;
  job.build = model.layers;
  job.input = model.input;
  Ints extents = model.input;
  extents.insert(extents.begin(), samples);
  job.x = scratch.path(model.name + "_x.npy");
  job.y = scratch.path(model.name + "_y.npy");
  write_npy(job.x.file, wave_tensor(extents, 0.37));
  write_npy(job.y.file, classes(samples, 4));
  if (model.weighted) {
    job.sample_weight = scratch.path(model.name + "_w.npy");
    Tensor weights = wave_tensor({samples}, 0.7);
    for (float& weight : weights.as<float>()) weight = 1 + weight / 2;
    write_npy(job.sample_weight.file, weights);
  }
  job.loss = "sparse_categorical_crossentropy";
  job.metrics = Json::list();
  job.metrics.push("accuracy");
  job.optimizer = model.optimizer;
  job.batch_size = 16;
  job.epochs = 17;  // 51 steps
  job.seed = 5;
  job.validation_split = 0.1;
  return job;
}

struct Trained {
  std::vector<std::string> names;
  std::vector<Tensor> values;
  std::vector<std::vector<double>> history;
};

Trained train(const FitJob& job, int64_t replicas, int64_t accumulate, bool synchronizes = false) {
  FitJob own = job;
  ParallelOptions options;
  options.accumulate = accumulate;
  options.threads = 1;
  options.synchronizes = synchronizes;
  const ParallelPlan plan = plan_parallel(own, options, replicas, 2);
  Trainer trainer(own);
  ParallelFit fit(trainer, open_device("cpu"), plan, options);
  fit.run([](Trainer&, const std::string& error) {
    EXPECT_EQ(error, "");
    return true;
  });
  EXPECT_TRUE(trainer.is_done());
  Trained out{trainer.states(), {}, trainer.history()};
  for (size_t i = 0; i < out.names.size(); ++i) out.values.push_back(fit.read(i));
  return out;
}

// The largest difference of a state, over its largest value; what is nearly 0 is noise, as a bias before a normalization.
double difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != DType::f32) return 0;
  double largest = 1e-2, apart = 0;
  for (size_t i = 0; i < a.as<float>().size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a.as<float>()[i])));
    apart = std::max(apart, static_cast<double>(std::abs(a.as<float>()[i] - b.as<float>()[i])));
  }
  return apart / largest;
}

void expect_near(const Trained& a, const Trained& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.names, b.names);
  for (size_t i = 0; i < a.names.size(); ++i) EXPECT_LE(difference(a.values[i], b.values[i]), tolerance) << what << ", " << a.names[i];
  ASSERT_EQ(a.history.size(), b.history.size());
  for (size_t epoch = 0; epoch < a.history.size(); ++epoch)
    for (size_t k = 0; k < a.history[epoch].size(); ++k)
      EXPECT_NEAR(a.history[epoch][k], b.history[epoch][k], 1e-4 * std::max(1.0, std::abs(a.history[epoch][k])))
          << what << ", epoch " << epoch;
}

const Json momentum = JsonMembers{{"name", "sgd"}, {"learning_rate", 0.05}, {"momentum", 0.9}};

const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {"dense", "dense 40 tanh; dense 12 tanh; dense 4 softmax", {9}, momentum},
      {"weighted",
       "dense 24 tanh; dense 4 softmax",
       {9},
       JsonMembers{{"name", "sgd"}, {"learning_rate", 0.1}, {"global_clipnorm", 0.5}},
       true},
      {"convolution", "conv2d 6 3 tanh; max_pool 2; dropout 0.3; flatten; dense 4 softmax", {8, 8, 2}, momentum},
      {"recurrent", "lstm 8; dropout 0.2; dense 4 softmax", {6, 5}, JsonMembers{{"name", "adam"}, {"learning_rate", 0.002}}},
  };
  return all;
}

TEST(parallel_fit, any_number_of_replicas_and_small_batches_give_the_same_weights) {
  const Scratch scratch;
  for (const Model& model : models()) {
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
  const Model model{"normalized", "dense 16; batch_normalization; activation tanh; dense 4 softmax", {9}, momentum};
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
  ParallelFit fit(trainer, open_device("cpu"), plan, options);
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
