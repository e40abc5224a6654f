// Trains one job with several devices: each computes its part of every batch, then all parts' gradients are added up, and the update is
// that of the whole batch, whatever the number of devices.
#pragma once

#include <functional>
#include <map>

#include "tutti/run/communicator.h"
#include "tutti/run/parallel_part.h"
#include "tutti/run/parallel_plan.h"

namespace tutti {

class ParallelFit : public StateValues {
 public:
  // Replicas are threads of this process, or, where `ranks` is given, this process is one of them. The trainer is described and attached.
  ParallelFit(Trainer& trainer, std::shared_ptr<Device> device, const ParallelPlan& plan, const ParallelOptions& options,
              std::shared_ptr<RankGroup> ranks = nullptr);
  ~ParallelFit() override;

  // As FitTeam::run tells: after each step, and says whether it goes on. Until the job is done, or `stepped` says no. Throws Error when a
  // device fails.
  using Stepped = std::function<bool(Trainer& trainer, const std::string& error)>;
  void run(const Stepped& stepped);

  // Where the time of the steps so far went, by replica; of ranks, this one's.
  std::vector<const Timeline*> timelines() const;
  int64_t measured_steps() const { return std::ssize(step_seconds_); }
  // Of the fastest twentieth of the steps, the slowest: what a step takes when nothing else runs on the machine.
  double undisturbed_step() const;
  double exchanged_bytes() const;  // by a replica, a step
  void forget_times();

  Tensor read(size_t state) const override;
  void write(size_t state, const Tensor& value) override;

 private:
  struct Replica;
  struct Update;
  std::shared_ptr<Buffer> allocate_filled(const Tensor& value) const;
  void make_replica(size_t rank, size_t local, const std::vector<Tensor>& values);
  void work(Replica& replica);
  void work_as_rank(const Stepped& stepped);
  void compute_part(Replica& replica);
  void update(Replica& replica);
  bool take(const Stepped& stepped, std::span<const std::vector<std::vector<double>>* const> parts);

  Trainer& trainer_;
  ParallelPlan plan_;
  std::shared_ptr<RankGroup> ranks_;
  std::shared_ptr<PartPrograms> programs_;
  std::unique_ptr<ThreadGroup> threads_;
  std::vector<std::vector<size_t>> buckets_;               // of ranks
  std::map<std::string, std::shared_ptr<Buffer>> shared_;  // states that replicas divide
  std::vector<std::unique_ptr<Replica>> replicas_;
  bool goes_on_ = true, training_ = true;  // of the step at hand; written by replica 0 between barriers
  std::vector<float> step_seconds_;        // from one step to the next; of training
};

}  // namespace tutti
