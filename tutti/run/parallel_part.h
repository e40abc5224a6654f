// One device's part of each batch: the programs that compute it, and where its gradients are until all parts meet.
#pragma once

#include <mutex>

#include "tutti/device/device.h"
#include "tutti/run/trace.h"
#include "tutti/run/trainer.h"

namespace tutti {

// Loss and metrics, by output, of the samples that are a replica's own.
using PartResults = std::vector<std::vector<double>>;

// The graphs of a job's parts compiled, for any number of replicas.
class PartPrograms {
 public:
  // `names_kernels`: where the device tells their times.
  PartPrograms(const Trainer& trainer, std::shared_ptr<Device> device, int threads, const PartOptions& options, bool names_kernels = false);

  // `adds`: gradients are added to those of the small batches before.
  Graph graph(StepKind kind, bool adds) const;
  std::unique_ptr<Program> with_states(StepKind kind, bool adds, StateBuffers& states);
  struct Kernel {
    std::string name;
    int depth;  // in how many loops
  };
  // Of a program that with_states() has made; none where they are not named.
  const std::vector<Kernel>& kernels(StepKind kind, bool adds);
  const std::shared_ptr<const StepGraph>& facts() const { return facts_; }  // without a graph
  size_t results() const { return 1 + facts_->metrics.size(); }             // outputs before the gradients
  int64_t result_elements() const { return result_elements_; }              // of all of these
  const Graph& update() const { return update_; }
  const std::vector<Type>& sums() const { return sums_; }             // what parts add up for the update
  const std::vector<std::string>& states() const { return states_; }  // of all graphs
  const std::shared_ptr<Device>& device() const { return device_; }
  int threads() const { return threads_; }

 private:
  const Trainer& trainer_;
  std::shared_ptr<Device> device_;
  int threads_;
  PartOptions options_;
  std::shared_ptr<const StepGraph> facts_;
  int64_t result_elements_ = 0;
  Graph update_;
  std::vector<Type> sums_;
  std::vector<std::string> states_;
  std::mutex mutex_;
  std::map<std::pair<StepKind, bool>, std::unique_ptr<Program>> programs_;
  bool names_kernels_;
  std::map<std::pair<StepKind, bool>, std::vector<Kernel>> kernels_;
};

// Of `parts` in all, those that one replica computes of each batch: each small batch is divided between the replicas.
struct Division {
  size_t rank = 0, replicas = 1, small_batches = 1;
  Trainer::Part part(size_t small_batch, size_t samples) const;
};

using SumBuffers = std::vector<std::shared_ptr<Buffer>>;

class PartWorker {
 public:
  // `kernels` hears of each kernel, where it keeps spans. `sums`: where those are; none: in memory of its own.
  PartWorker(std::shared_ptr<PartPrograms> programs, const Division& division, StateBuffers states, Collective* collective,
             Timeline& timeline, Timeline& kernels, SumBuffers sums = {});
  ~PartWorker();

  // Computes its part of the trainer's next batch. `ready` hears of each sum, by index, when it is complete.
  void compute(const Trainer& trainer, const Program::Ready& ready = {});
  const PartResults& results() const { return results_; }
  Buffer& sum(size_t i) { return *sums_[i]; }
  const SumBuffers& sums() const { return sums_; }

 private:
  struct Step;
  Step& step_for(StepKind kind, bool adds);
  void run(Step& step, const Program::Ready& ready);

  std::shared_ptr<PartPrograms> programs_;
  Division division_;
  StateBuffers states_;
  Collective* collective_;
  Timeline &timeline_, &kernels_;
  SumBuffers sums_;
  std::map<std::pair<StepKind, bool>, std::unique_ptr<Step>> steps_;
  PartResults results_;
};

}  // namespace tutti
