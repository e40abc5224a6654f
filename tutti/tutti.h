// Tutti's public surface: Keras models, loaded and run, alone or several as one.
//
//   auto model = tutti::load("my_model.h5");
//   auto predict = tutti::compile(model, {.batch = 1});
//   predict(input, output);                              // spans of float; no allocation, no lock
//
//   auto all = tutti::ensemble({a, b, c}, tutti::Reduce::mean);  // a model like any other
//   tutti::LiveEnsemble live(all);                       // one whose members come and go: live.add("d", d); live.now()(input, output)
//
//   tutti::FitJob job;                                   // see run/fit_job.h
//   job.architecture = tutti::Sequential({2}).dense(16, "relu").dense(1).config();
//   auto report = tutti::fit({job, ...});                // trained at once
//
//   auto owner = tutti::connect("/tmp/tutti.sock");      // of a `tutti serve`: many processes, one device
//   auto remote = owner.model("my_model");
//   remote(input, output);
//
// Errors are exceptions derived from tutti::Error, each one line that says where, which rule, and the values. The library never prints.
// A model that was moved from says so when it is used.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/tensor.h"
#include "tutti/keras/fit/build.h"
#include "tutti/run/batch_predictor.h"
#include "tutti/run/ensemble.h"
#include "tutti/run/explain.h"
#include "tutti/run/fit.h"
#include "tutti/serve/client.h"

namespace tutti {

// A model from a file; copies share it.
class Model {
 public:
  explicit Model(std::shared_ptr<const keras::AnyModel> model) : model_(std::move(model)) {}
  const std::vector<keras::ModelInput>& inputs() const { return shared()->inputs(); }  // name, dtype, shape (-1: any)
  const std::vector<std::string>& output_names() const { return shared()->output_names(); }
  // What the file asks for and is refused; empty for a model that can run.
  const std::vector<std::string>& problems() const { return shared()->problems(); }
  const std::shared_ptr<const keras::AnyModel>& shared() const {
    if (!model_) fail<InvalidArgument>("model", "there is none: it was moved from, or made of nothing");
    return model_;
  }

  // Any number of samples, one tensor an input, first axis the samples. For repeated calls compile once instead.
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs, int64_t batch = 32,
                              const std::string& device = std::string(default_device)) const;

 private:
  std::shared_ptr<const keras::AnyModel> model_;
};

// Opens a .keras or .h5 file, or an ensemble's manifest (.toml).
Model load(const std::string& path);

// Models that see the same inputs, as one: their outputs reduced on the device. Throws InvalidArgument when they do not go together.
Model ensemble(const std::vector<Model>& members, Reduce reduce = Reduce::mean);
Model ensemble(const std::vector<Model>& members, const EnsembleOptions& options);

// A program for one batch size, ready to be called again and again from one thread.
class CompiledModel {
 public:
  CompiledModel(const Model& model, const CompileOptions& options) : model_(model), predictor_(*model.shared(), options) {}
  // The same for another thread: shares the program and its weights, has buffers of its own.
  CompiledModel context() const { return {model_, predictor_.context()}; }
  const std::vector<Type>& input_types() const { return predictor_.input_types(); }
  const std::vector<Type>& output_types() const { return predictor_.output_types(); }
  const ProgramStats& stats() const { return predictor_.stats(); }

  // One float32 input, one float32 output: batch x extents values each.
  void operator()(std::span<const float> input, std::span<float> output);
  // Any inputs and outputs, as bytes of input_types() and output_types().
  void operator()(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) {
    predictor_.run(inputs, outputs);
  }

  // Without any copy: what is written into input() is computed by run() and read from output(). One float32 input, one float32 output.
  std::span<float> input();
  void run() { predictor_.run(); }
  std::span<const float> output();

 private:
  friend class LiveEnsemble;
  void check_single_floats() const;
  CompiledModel(Model model, Predictor predictor) : model_(std::move(model)), predictor_(std::move(predictor)) {}
  Model model_;
  Predictor predictor_;
};

CompiledModel compile(const Model& model, const CompileOptions& options = {});

// An ensemble that predicts while its members come and go: docs/ensembles.md. Its inputs stay those that it began with.
class LiveEnsemble {
 public:
  // Throws InvalidArgument for a model that is no ensemble, and for two members of one name.
  explicit LiveEnsemble(const Model& ensemble, const CompileOptions& options = {});
  LiveEnsemble context() const;  // for another thread: shares the members and their programs, with all that becomes of them

  // From any thread. Compile what the member is compiled together with, and nothing else; predictions go on meanwhile. What throws
  // (a name that is taken or unknown, a member that does not go with the others, the last one to be dropped) changes nothing.
  void add(const std::string& name, const Model& member, double weight = 1);  // the weight counts for mean and votes
  void drop(const std::string& name);
  std::vector<std::string> members() const;  // in order

  // Predicts with the members that there are now; these stay until it is asked for again. For this context's thread.
  CompiledModel& now();

 private:
  struct Shared;
  explicit LiveEnsemble(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;
  std::optional<CompiledModel> now_;
  int64_t seen_ = -1;  // changes, when it was made
};

// Trains the models of all jobs at once (docs/fit.md). Without a folder in the options nothing is written; results then hold the trained
// models: Model(result.model). A job that fails has an error in its result, and stops alone.
using keras::Sequential;
FitReport fit(const std::vector<FitJob>& jobs, const FitOptions& options = {});

// What it compiles to, and how long each part takes: docs/explain.md.
inline Explanation explain(const Model& model, const CompileOptions& options = {}) { return explain(*model.shared(), options); }

}  // namespace tutti
