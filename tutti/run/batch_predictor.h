// Any number of samples: cut into batches, each computed by the compiled program for its size.
//
// A program is compiled per batch size on demand. The first sizes get programs of their own; when more turn up, a batch is filled with
// zeros to the next size class (1, 2, 3, 4, 6, 8, 12, 16, ...), so that there is a bounded number of programs whatever sizes come. Models
// that mix the samples of a batch always get the exact size.
#pragma once

#include <list>
#include <optional>

#include "tutti/run/predictor.h"

namespace tutti {

// Samples with the programs that will compute them, to be run again and again.
class PreparedPrediction {
 public:
  void run() {
    begin();
    end();
  }
  // The same in halves: on a device that computes by itself, the first batch is under way between them.
  void begin();
  void end();
  const std::vector<Tensor>& outputs() const { return outputs_; }
  int64_t flops() const;  // of a run

 private:
  friend class BatchPredictor;
  struct Batch {
    std::shared_ptr<Predictor> predictor;
    std::vector<std::span<const std::byte>> inputs;  // of the program
    std::vector<std::span<std::byte>> outputs;
    // Fewer samples than the program computes stand in tensors of its size.
    std::vector<Tensor> padded;
    struct Copy {
      std::span<const std::byte> from;
      std::span<std::byte> to;
    };
    std::vector<Copy> before, after;
    std::optional<Predictor::Begun> begun = {};
  };
  static void pad(Batch& batch);
  void begin(size_t batch);
  std::vector<Tensor> inputs_, outputs_;
  std::vector<Batch> batches_;
};

class BatchPredictor {
 public:
  // Of the options: the largest batch, device, threads, and how members are arranged.
  BatchPredictor(std::shared_ptr<const keras::AnyModel> model, CompileOptions options);

  // One tensor an input in the model's order, first axis the samples; gives one tensor an output. Converts dtypes as Keras does.
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs);
  PreparedPrediction prepare(const std::vector<Tensor>& inputs);
  const keras::AnyModel& model() const { return *model_; }
  int64_t batch() const { return options_.batch; }
  const std::string& device() const { return options_.device; }
  int64_t compilations() const { return compilations_; }  // so far
  // Whether each sample's results are its own, whatever else is in the batch. `rows`: one sample of each input.
  bool samples_are_independent(const std::vector<Type>& rows);

 private:
  struct Entry {
    std::vector<Shape> shapes;
    std::shared_ptr<Predictor> predictor;
  };
  std::shared_ptr<Predictor> program_for(int64_t count, const std::vector<Shape>& shapes);
  std::shared_ptr<Predictor> find(const std::vector<Shape>& shapes);
  std::shared_ptr<Predictor> compile(const std::vector<Shape>& shapes);
  bool may_be_padded(const std::vector<Shape>& shapes);
  std::shared_ptr<const keras::AnyModel> model_;
  CompileOptions options_;
  int64_t compilations_ = 0;
  std::list<Entry> programs_;  // most recently used first
  std::optional<bool> independent_;
};

// The smallest 2^k or 3 * 2^k that is at least `count`.
int64_t size_class(int64_t count);

}  // namespace tutti
