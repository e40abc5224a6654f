// Jobs of one group that step together on a device: one job by itself, or several stacked in one program with an axis of models.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "tutti/base/stopwatch.h"
#include "tutti/device/device.h"
#include "tutti/run/fit_group.h"

namespace tutti {

// The steps of a group compiled, of one job and of several stacked, each for any number of teams with states of their own.
class SharedPrograms {
 public:
  SharedPrograms(const FitGroup& group, std::shared_ptr<Device> device, int threads)
      : group_(group), device_(std::move(device)), threads_(threads) {}
  // For so many jobs stacked; 0: for one that is not. Not shared: nobody else will ask for it, and one that is never run itself would only
  // take memory.
  std::unique_ptr<Program> with_states(StepKind kind, size_t stacked, bool shared, StateBuffers& states);
  // Of those stacked only so many are still wanted.
  void keep_stacked(size_t stacked);
  bool computes();  // else the device plans only
  const FitGroup& group() const { return group_; }
  const std::shared_ptr<Device>& device() const { return device_; }
  int threads() const { return threads_; }  // of a program; 0: as many as the work is worth

 private:
  std::unique_ptr<Program> compile(StepKind kind, size_t stacked, StateBuffers* states) const;
  Program& program(StepKind kind, size_t stacked);
  const FitGroup& group_;
  std::shared_ptr<Device> device_;
  int threads_;
  std::mutex mutex_;
  std::map<std::pair<StepKind, size_t>, std::unique_ptr<Program>> programs_;
};

class FitTeam {
 public:
  // Members by index in the group; one, unless they are stacked. Of a stacked team, steps of the kinds `by_one` are computed for one member
  // at a time: few ever ask for them.
  FitTeam(std::shared_ptr<SharedPrograms> programs, const std::vector<size_t>& members, bool stacked, std::set<StepKind> by_one = {});
  ~FitTeam();
  FitTeam(const FitTeam&) = delete;
  FitTeam& operator=(const FitTeam&) = delete;

  // Goes on for about so long. `stepped` is told of each member after each of its steps, and says whether it goes on; of one that fails it
  // is told the reason. Members are charged the time of their steps, divided by `at_once`: so many teams run side by side.
  using Stepped = std::function<bool(Trainer& trainer, const std::string& error)>;
  void run(double seconds, size_t at_once, const Stepped& stepped);
  std::vector<Trainer*> live() const;  // those that go on
  void drop(const Trainer& trainer);   // no longer one of them

  // Seconds a member of a step of the most frequent kind, the fastest of those of so long. The members' values are worth nothing
  // afterwards.
  double measure(double seconds);

 private:
  struct Step;
  class Member;

  void make_states(const std::vector<std::vector<Tensor>>& values);
  void make_members(const std::vector<size_t>& members);
  Step& step_for(StepKind kind, bool by_one);
  // Inputs from the members, the run, and their results into `outputs_`.
  void compute(Step& step, std::span<Member* const> active);
  double seconds_each(size_t members) const;  // that a member of the step at hand is charged
  void take(Step& step, Member& member, const Stepped& stepped);
  void step_together(StepKind kind, const Stepped& stepped);
  void step_by_one(Member& member, const Stepped& stepped);
  StepKind most_wanted() const;
  int64_t live_count() const;
  void leave_stopped_behind();

  std::shared_ptr<SharedPrograms> programs_;
  const FitGroup& group_;
  Device& device_;
  bool stacked_;
  bool is_first_size_ = true;  // no member has been left behind
  std::set<StepKind> by_one_;
  std::vector<std::unique_ptr<Member>> members_;
  StateBuffers states_, single_states_;
  std::map<StepKind, std::unique_ptr<Step>> steps_, single_steps_;
  std::vector<Member*> active_;  // of the step at hand
  Stopwatch since_;              // the step at hand began
  size_t at_once_ = 1;
};

}  // namespace tutti
