// Small jobs that several replicas train, and what became of them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "tests/scratch.h"
#include "tutti/data/npy.h"
#include "tutti/run/parallel_fit.h"

namespace tutti {

inline Tensor wave_tensor(const Shape& shape, double step) {
  Tensor out(DType::f32, shape);
  double at = 0.3;
  for (float& value : out.as<float>()) value = static_cast<float>(std::sin(at += step));
  return out;
}

inline Tensor classes(int64_t samples, int64_t count) {
  Tensor out(DType::i32, {samples});
  for (int64_t i = 0; i < samples; ++i) out.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>((i * 7 + i / 3) % count);
  return out;
}

struct SmallModel {
  std::string name, layers;
  Ints input;
  Json optimizer;
  bool weighted = false;
  Json architecture = {};  // instead of layers
};

// 45 samples: the last of each pass's batches of 16 has 13.
inline FitJob job_of(const Scratch& scratch, const SmallModel& model) {
  constexpr int64_t samples = 45;
  FitJob job;
  job.name = model.name;
  job.build = model.layers;
  job.architecture = model.architecture;
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

inline Trained train(const FitJob& job, int64_t replicas, int64_t accumulate, bool synchronizes = false,
                     const std::string& device = "cpu") {
  FitJob own = job;
  ParallelOptions options;
  options.accumulate = accumulate;
  options.threads = 1;
  options.synchronizes = synchronizes;
  const ParallelPlan plan = plan_parallel(own, options, replicas, 2);
  Trainer trainer(own);
  std::vector<std::shared_ptr<Device>> devices;
  for (const std::string& name : parse_devices(std::to_string(replicas), device)) devices.push_back(open_device(name));
  ParallelFit fit(trainer, devices, plan, options);
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
inline double difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != DType::f32) return 0;
  double largest = 1e-2, apart = 0;
  for (size_t i = 0; i < a.as<float>().size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a.as<float>()[i])));
    apart = std::max(apart, static_cast<double>(std::abs(a.as<float>()[i] - b.as<float>()[i])));
  }
  return apart / largest;
}

inline void expect_near(const Trained& a, const Trained& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.names, b.names);
  for (size_t i = 0; i < a.names.size(); ++i) EXPECT_LE(difference(a.values[i], b.values[i]), tolerance) << what << ", " << a.names[i];
  ASSERT_EQ(a.history.size(), b.history.size());
  for (size_t epoch = 0; epoch < a.history.size(); ++epoch)
    for (size_t k = 0; k < a.history[epoch].size(); ++k)
      EXPECT_NEAR(a.history[epoch][k], b.history[epoch][k], 1e-4 * std::max(1.0, std::abs(a.history[epoch][k])))
          << what << ", epoch " << epoch;
}

// What two replicas say of a job that fails.
inline std::string error_of(FitJob job, const std::string& device) {
  ParallelOptions options;
  options.threads = 1;
  const ParallelPlan plan = plan_parallel(job, options, 2, 2);
  Trainer trainer(job);
  std::vector<std::shared_ptr<Device>> devices;
  for (const std::string& name : parse_devices("2", device)) devices.push_back(open_device(name));
  ParallelFit fit(trainer, devices, plan, options);
  std::string said;
  fit.run([&](Trainer&, const std::string& error) {
    said = error;
    return true;
  });
  return said;
}

inline const Json momentum = JsonMembers{{"name", "sgd"}, {"learning_rate", 0.05}, {"momentum", 0.9}};

inline const std::vector<SmallModel>& models() {
  static const std::vector<SmallModel> all = {
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

// Its loss is soon beyond what a float holds.
inline FitJob overflowing(const Scratch& scratch) {
  FitJob job = job_of(scratch, models()[0]);
  job.build = "dense 8; dense 1";
  job.loss = "mse";
  job.optimizer = JsonMembers{{"name", "sgd"}, {"learning_rate", 1e30}};
  return job;
}

// Long before its last epoch, with a smaller rate than it began with, and not with its last weights.
inline FitJob stopping_early(const Scratch& scratch) {
  FitJob job = job_of(scratch, models()[0]);
  job.epochs = 60;
  job.early_stopping = JsonMembers{{"monitor", "val_loss"}, {"patience", int64_t{4}}, {"restore_best_weights", true}};
  job.reduce_on_plateau = JsonMembers{{"monitor", "val_loss"}, {"patience", int64_t{1}}, {"factor", 0.5}};
  return job;
}

}  // namespace tutti
