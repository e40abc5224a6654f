// Predictions for fixed shapes: one compiled program with its buffers kept.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/device/device.h"
#include "tutti/keras/any_model.h"
#include "tutti/run/arrange.h"

namespace tutti {

class BorrowedBuffer;  // device/host.h

struct CompileOptions {
  int64_t batch = 1;
  std::string device = std::string(default_device);
  // Shapes of the inputs, batch included, for models that leave extents open.
  std::vector<Shape> input_shapes = {};
  int threads = 0;                                  // at most; 0: as many as the work is worth
  Arrangement arrangement = Arrangement::measured;  // of an ensemble's members
  Precision precision = Precision::float32;         // of products; other than float32 on xla devices only
  // Shared by the predictors of one model on one device: weights are prepared once. Filled by the first.
  std::shared_ptr<CompileCache> cache = {};
};

// The graph that is compiled: lowered, an ensemble's members arranged for the device.
Graph lower_for(const keras::AnyModel& model, const CompileOptions& options, const std::shared_ptr<Device>& device,
                std::vector<ArrangedGroup>* groups = nullptr);

// The second half of it, of a graph that was lowered with this trace.
Graph arrange_for(Graph graph, const std::vector<keras::LayerTrace>& trace, const CompileOptions& options,
                  const std::shared_ptr<Device>& device, std::vector<ArrangedGroup>* groups = nullptr);

// device.compile(); where a program does not fit, the error suggests a batch that might.
std::unique_ptr<Program> compile_batch(Device& device, const Graph& graph, CompileSettings& settings, int64_t batch);

// One program for fixed shapes. One thread at a time.
class Predictor {
 public:
  Predictor(const keras::AnyModel& model, const CompileOptions& options);
  // A program of the device.
  Predictor(std::shared_ptr<Device> device, std::unique_ptr<Program> program, std::shared_ptr<CompileCache> cache = {});
  // The same for another thread: shares the program and its weights.
  Predictor context() const;
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;
  const std::shared_ptr<CompileCache>& cache() const { return cache_; }

  const std::vector<Type>& input_types() const { return program().input_types(); }
  const std::vector<Type>& output_types() const { return program().output_types(); }
  const ProgramStats& stats() const { return program().stats(); }

  // Bytes of each input and output in the model's order, of exactly these types. Where the device computes in host memory no value is
  // copied twice.
  void run(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs);

  // The same without any copy, where computes_in_host_memory(): straight from and into these bytes, aligned to 64.
  void run_in_place(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs);
  bool computes_in_host_memory();

  // The same in halves: a device that is_asynchronous() computes between them, and a second run may begin before the first ends.
  struct Begun {
    std::vector<std::unique_ptr<Buffer>> outputs;
    std::vector<Buffer*> pointers;
  };
  Begun begin(std::span<const std::span<const std::byte>> inputs);
  void end(Begun begun, std::span<const std::span<std::byte>> outputs);
  bool is_asynchronous() const { return device_->is_asynchronous(); }
  bool tells_times() const { return program().tells_times(); }

  // The same in parts. run_timed() is Program's, for devices that tell times.
  void set_input(size_t i, std::span<const std::byte> bytes);
  void run() { program().run(input_pointers_, output_pointers_); }
  void synchronize() { device_->synchronize(); }
  void run_timed(std::span<double> seconds) { program().run_timed(input_pointers_, output_pointers_, seconds); }

  // Without any copy, where the device computes in host memory (elsewhere these are empty): what is written into the program's own inputs
  // is computed by run(); its outputs stay until the next one.
  std::span<std::byte> input(size_t i) { return inputs_.at(i)->host(); }
  std::span<const std::byte> output(size_t i) { return outputs_.at(i)->host(); }

 private:
  struct Compiled {
    std::shared_ptr<Device> device;
    std::unique_ptr<Program> program;
    std::shared_ptr<CompileCache> cache;
  };
  static Compiled compile(const keras::AnyModel& model, const CompileOptions& options);
  Program& program() const {
    if (!program_) fail<InvalidArgument>("predict", "this one was moved from");
    return *program_;
  }
  explicit Predictor(Compiled compiled) : Predictor(std::move(compiled.device), std::move(compiled.program), std::move(compiled.cache)) {}
  std::shared_ptr<Device> device_;
  std::shared_ptr<CompileCache> cache_;
  std::unique_ptr<Program> program_;
  std::vector<std::unique_ptr<Buffer>> inputs_, outputs_;
  std::vector<Buffer*> input_pointers_, output_pointers_;
  std::vector<Begun> spare_;
  // For run_in_place(): all inputs, then all outputs.
  std::vector<std::unique_ptr<BorrowedBuffer>> borrowed_;
  std::vector<Buffer*> borrowed_pointers_;
  void check_input(size_t i, std::span<const std::byte> bytes) const;
  void check_inputs(std::span<const std::span<const std::byte>> inputs) const;
  void set_inputs(std::span<const std::span<const std::byte>> inputs);
  void check_outputs(std::span<const std::span<std::byte>> outputs) const;
};

}  // namespace tutti
