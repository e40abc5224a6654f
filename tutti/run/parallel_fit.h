// Trains one job with several devices: each computes its part of every batch, then all parts' gradients are added up, and the update is
// that of the whole batch, whatever the number of devices.
#pragma once

#include <functional>

#include "tutti/run/parallel_replicas.h"

namespace tutti {

class ParallelFit : public StateValues {
 public:
  // Replicas are threads of this process or, where `devices` are those of a plugin, these; or, where `ranks` is given, this process is one
  // of them. The trainer is described and attached.
  ParallelFit(Trainer& trainer, std::vector<std::shared_ptr<Device>> devices, const ParallelPlan& plan, const ParallelOptions& options,
              std::shared_ptr<RankGroup> ranks = nullptr);
  ~ParallelFit() override;

  // As FitTeam::run tells: after each step, and says whether it goes on. Until the job is done, or `stepped` says no. Throws Error when a
  // device fails.
  using Stepped = std::function<bool(Trainer& trainer, const std::string& error)>;
  void run(const Stepped& stepped);

  // Where the time of the steps so far went, by replica; of ranks, this one's.
  std::vector<const Timeline*> timelines() const;
  std::vector<const Timeline*> traced() const;  // these, and what goes on meanwhile
  int64_t measured_steps() const { return std::ssize(step_seconds_); }
  // Of the fastest twentieth of the steps, the slowest: what a step takes when nothing else runs on the machine.
  double undisturbed_step() const;
  double exchanged_bytes() const;  // by a replica, a step
  void forget_times();
  Json json() const { return replicas_->json(); }  // what replicas chose and measured

  Tensor read(size_t state) const override { return replicas_->read(state); }
  void write(size_t state, const Tensor& value) override { replicas_->write(state, value); }

 private:
  bool take(const Stepped& stepped, std::span<const PartResults* const> parts);

  Trainer& trainer_;
  ParallelPlan plan_;
  std::shared_ptr<PartPrograms> programs_;
  std::unique_ptr<Replicas> replicas_;
  std::vector<float> step_seconds_;  // from one step to the next; of training
};

}  // namespace tutti
