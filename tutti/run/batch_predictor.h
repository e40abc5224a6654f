// Any number of samples: cut into batches, each computed by the compiled program for its size.
//
// A program is compiled per batch size on demand. The first sizes get programs of their own; when more turn up, a batch is filled with
// zeros to the next size class (1, 2, 3, 4, 6, 8, 12, 16, ...), so that there is a bounded number of programs whatever sizes come. Models
// that mix the samples of a batch always get the exact size.
//
// Several batches at once are computed side by side where the device has threads: each batch by one thread from the first layer to the
// last, so that nobody waits for another between the layers and what lies between them stays in that thread's cache. So is one batch, cut
// into parts, where that is worth it: a sample's results do not depend on those beside it.
#pragma once

#include <functional>
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
  // Of samples that nobody has given: batch by batch, on a device that computes in host memory. Each thread, below threads(), computes in
  // side_by_side() only; it writes samples into inputs() first, which come from its cache then.
  void side_by_side(const std::function<void(int thread)>& body) const;
  size_t batches() const { return batches_.size(); }
  std::vector<std::span<std::byte>> inputs(size_t batch, int thread) const;
  void compute(size_t batch, int thread) const;
  // The same in halves: on a device that computes by itself, the first batch is under way between them.
  void begin();
  void end();
  const std::vector<Tensor>& outputs() const { return outputs_; }
  int threads() const { return threads_; }  // that compute batches side by side
  bool is_side_by_side() const { return threads_ > 1; }

 private:
  friend class BatchPredictor;
  using Predictors = std::vector<Predictor>;  // of one program: one, or one for each thread
  struct Batch {
    std::shared_ptr<Predictors> predictors;
    int64_t first = 0, count = 0;                    // samples
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
  void end_side_by_side();
  std::shared_ptr<Device> device_;
  int threads_ = 1;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<Batch> batches_;
};

class BatchPredictor {
 public:
  // Of the options: the largest batch, device, threads, and how members are arranged.
  BatchPredictor(std::shared_ptr<const keras::AnyModel> model, CompileOptions options);

  // One tensor an input in the model's order, first axis the samples; gives one tensor an output. Converts dtypes as Keras does.
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs);
  // `batch`: at most so many samples together, if fewer than batch().
  PreparedPrediction prepare(const std::vector<Tensor>& inputs, std::optional<int64_t> batch = {});
  // So many samples, of which one is `rows`, to be given later.
  PreparedPrediction prepare(const std::vector<Type>& rows, int64_t samples, int64_t batch);
  const keras::AnyModel& model() const { return *model_; }
  int64_t batch() const { return options_.batch; }
  const std::string& device() const { return options_.device; }
  int64_t compilations() const { return compilations_; }  // so far
  // Whether each sample's results are its own, whatever else is in the batch. `rows`: one sample of each input.
  bool samples_are_independent(const std::vector<Type>& rows);
  int64_t flops_a_sample(const std::vector<Type>& rows);

 private:
  using Predictors = PreparedPrediction::Predictors;
  struct Entry {
    std::vector<Shape> shapes;
    int side_by_side;  // so many predictors of one thread each, or 1: one with as many threads as it likes
    std::shared_ptr<Predictors> predictors;
  };
  // Programs for batches of at most `largest` samples.
  std::shared_ptr<Predictors> program_for(int64_t count, int64_t largest, const std::vector<Shape>& shapes, int side_by_side);
  std::shared_ptr<Predictors> find(const std::vector<Shape>& shapes, int side_by_side);
  std::shared_ptr<Predictors> compile(const std::vector<Shape>& shapes, int side_by_side);
  // What the lowered model says of samples of these shapes, before anything is compiled.
  struct Nature {
    std::vector<Shape> shapes;  // of two samples
    bool independent = false;
    int64_t flops = 0, scan_flops = 0;  // of one; of them in loops over time
    int64_t weight_bytes = 0;
    int64_t widest_bytes = 0;  // the largest of the values that are computed for one
  };
  const Nature& nature(const std::vector<Shape>& shapes);
  // Batches and outputs, without inputs.
  PreparedPrediction cut(int64_t samples, int64_t largest, const std::vector<Shape>& shapes);
  int threads() const;  // there are
  // How many samples of one batch a thread computes at a time: where threads would wait for each other in every step of a loop, its share;
  // where what lies between the layers would leave the caches, as many as stay there. Else `largest`.
  int64_t part_for(int64_t samples, int64_t largest, const std::vector<Shape>& shapes);
  // Whether threads may each compute so many samples by themselves.
  bool is_worth_apart(int64_t samples, const std::vector<Shape>& shapes);
  std::shared_ptr<const keras::AnyModel> model_;
  CompileOptions options_;
  int64_t compilations_ = 0;
  std::list<Entry> programs_;     // most recently used first
  std::optional<Nature> nature_;  // of the shapes that came last
};

// The smallest 2^k or 3 * 2^k that is at least `count`.
int64_t size_class(int64_t count);

}  // namespace tutti
