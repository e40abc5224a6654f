#include "tutti/run/parallel_fit.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti {

ParallelFit::ParallelFit(Trainer& trainer, std::vector<std::shared_ptr<Device>> devices, const ParallelPlan& plan,
                         const ParallelOptions& options, std::shared_ptr<RankGroup> ranks)
    : trainer_(trainer), plan_(plan) {
  const bool launches = devices[0]->launches_replicas();
  const PartOptions parts{plan.replicas, plan.accumulate > 1, options.synchronizes};
  programs_ = std::make_shared<PartPrograms>(trainer, devices[0], plan.threads, parts, !options.trace.empty());
  trainer.describe(programs_->facts(), programs_->states());
  trainer.attach(this);
  const ReplicaSettings settings{trainer, programs_, plan, parts, !options.trace.empty(), options.bucket, options.exchange};
  replicas_ = launches           ? launched_replicas(settings, std::move(devices), std::move(ranks))
              : ranks != nullptr ? rank_replicas(settings, std::move(ranks))
                                 : thread_replicas(settings);
}

ParallelFit::~ParallelFit() = default;

std::vector<const Timeline*> ParallelFit::timelines() const {
  const auto all = replicas_->timelines();
  return {all.begin(), all.end()};
}

std::vector<const Timeline*> ParallelFit::traced() const {
  std::vector<const Timeline*> all = timelines();
  for (const Timeline* timeline : replicas_->details()) all.push_back(timeline);
  return all;
}

void ParallelFit::forget_times() {
  for (Timeline* timeline : replicas_->timelines()) timeline->clear();
  for (Timeline* timeline : replicas_->details()) timeline->clear();
  step_seconds_.clear();
}

double ParallelFit::undisturbed_step() const {
  if (step_seconds_.empty()) return 0;
  std::vector<float> sorted = step_seconds_;
  const auto place = sorted.begin() + std::ssize(sorted) / 20;
  std::nth_element(sorted.begin(), place, sorted.end());
  return static_cast<double>(*place);
}

double ParallelFit::exchanged_bytes() const { return tutti::exchanged_bytes(*programs_, plan_.replicas); }

// Sums of all parts' results, in their order, to the trainer. Whether it goes on.
bool ParallelFit::take(const Stepped& stepped, std::span<const PartResults* const> parts) {
  std::vector<std::vector<float>> sums;
  std::vector<std::span<const float>> outputs;
  for (size_t i = 0; i < programs_->results(); ++i) {
    auto& sum = sums.emplace_back((*parts[0])[i].size());
    for (size_t k = 0; k < sum.size(); ++k) {
      double total = 0;
      for (const auto* part : parts) total += (*part)[i][k];
      sum[k] = static_cast<float>(total);
    }
  }
  for (const auto& sum : sums) outputs.emplace_back(sum);
  try {
    trainer_.take(outputs);
  } catch (const Error& error) {
    stepped(trainer_, error.what());
    return false;
  }
  return !(trainer_.is_done() || trainer_.is_between_steps()) || stepped(trainer_, "");
}

void ParallelFit::run(const Stepped& stepped) {
  using Clock = Timeline::Clock;
  struct Running {
    explicit Running(Replicas& all) : replicas(all) { replicas.begin(); }
    ~Running() { replicas.end(); }
    Replicas& replicas;
  } const running(*replicas_);
  Timeline& first = *replicas_->timelines()[0];
  for (bool goes_on = true; goes_on;) {
    const bool training = trainer_.next().kind.training;
    const auto begin = Clock::now();
    const auto parts = replicas_->step(trainer_);
    const auto computed = Clock::now();
    trainer_.add_seconds(std::chrono::duration<double>(computed - begin).count());
    goes_on = take(stepped, parts) && !trainer_.is_done();
    first.add(Phase::host, computed, Clock::now());
    goes_on = replicas_->agree(goes_on);
    if (training) step_seconds_.push_back(std::chrono::duration<float>(Clock::now() - begin).count());
  }
}

}  // namespace tutti
