// Predictions: one compiled program with its buffers kept, and on top of it any number of samples in batches.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tutti/device/device.h"
#include "tutti/keras/model.h"

namespace tutti {

struct CompileOptions {
  int64_t batch = 1;
  std::string device = std::string(default_device);
  // Shapes of the inputs, batch included, for models that leave extents open.
  std::vector<Shape> input_shapes = {};
  int threads = 0;  // at most; 0: as many as the work is worth
  // Shared by the predictors of one model on one device: weights are prepared once. Filled by the first.
  std::shared_ptr<CompileCache> cache = {};
};

// One program for fixed shapes. One thread at a time.
class Predictor {
 public:
  Predictor(const keras::Model& model, const CompileOptions& options);
  // The same for another thread: shares the program and its weights.
  Predictor context() const;
  const std::shared_ptr<CompileCache>& cache() const { return cache_; }

  const std::vector<Type>& input_types() const { return program_->input_types(); }
  const std::vector<Type>& output_types() const { return program_->output_types(); }
  const ProgramStats& stats() const { return program_->stats(); }

  // Bytes of each input and output in the model's order, of exactly these types. Where the device computes in host memory no value is
  // copied twice.
  void run(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs);

 private:
  struct Compiled {
    std::shared_ptr<Device> device;
    std::unique_ptr<Program> program;
    std::shared_ptr<CompileCache> cache;
  };
  static Compiled compile(const keras::Model& model, const CompileOptions& options);
  explicit Predictor(Compiled compiled);
  std::shared_ptr<Device> device_;
  std::shared_ptr<CompileCache> cache_;
  std::unique_ptr<Program> program_;
  std::vector<std::unique_ptr<Buffer>> inputs_, outputs_;
  std::vector<Buffer*> input_pointers_, output_pointers_;
};

// Any number of samples: cuts them into batches, keeps a bounded number of compiled predictors, converts dtypes as Keras does.
class BatchPredictor {
 public:
  BatchPredictor(std::shared_ptr<const keras::Model> model, std::string device, int64_t batch, int threads = 0);

  // One tensor an input in the model's order, first axis the samples; gives one tensor an output.
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs);
  const keras::Model& model() const { return *model_; }
  int64_t batch() const { return batch_; }

  // The program for inputs of these shapes, compiled if need be. There until as many others were asked for as are kept.
  Predictor& compiled(const std::vector<Shape>& shapes);

 private:
  std::shared_ptr<const keras::Model> model_;
  std::string device_;
  int64_t batch_;
  int threads_;
  struct Entry {
    std::vector<Shape> shapes;
    std::unique_ptr<Predictor> predictor;
  };
  std::list<Entry> cache_;  // most recently used first
  std::shared_ptr<CompileCache> weights_;
};

}  // namespace tutti
