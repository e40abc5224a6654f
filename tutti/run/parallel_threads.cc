// Replicas that are threads of this process.
#include <atomic>
#include <thread>

#include "tutti/base/cores.h"
#include "tutti/base/error.h"
#include "tutti/base/start_thread.h"
#include "tutti/device/host.h"
#include "tutti/run/parallel_host.h"

namespace tutti {

namespace {

class ThreadReplicas : public Replicas {
 public:
  explicit ThreadReplicas(const ReplicaSettings& settings)
      : settings_(settings),
        group_(static_cast<int>(settings.plan.replicas), settings.plan.replicas * settings.plan.threads <= thread_limit()) {
    for (int i = 0; i < group_.size(); ++i)
      replicas_.push_back(make_host_replica(settings_, static_cast<size_t>(i), true, group_.member(i), shared_));
    std::vector<SumBuffers> sums;
    for (const auto& replica : replicas_) sums.push_back(replica->worker->sums());
    for (const auto& replica : replicas_) see_all_sums(settings_, *replica, sums);
  }

  void begin() override {
    goes_on_ = true;
    begun_ = Begun::not_yet;
    try {
      for (size_t i = 1; i < replicas_.size(); ++i)
        others_.push_back(start_thread<std::jthread>([this, i, core = this_core()] {
          begin_beside(core, i);
          begun_.wait(Begun::not_yet);
          if (begun_ == Begun::yes) work(*replicas_[i]);
        }));
    } catch (...) {
      tell(Begun::never);  // or they would wait for those that are not there
      others_.clear();
      throw;
    }
    tell(Begun::yes);
  }

  void end() override {
    goes_on_ = false;
    work(*replicas_[0]);  // tells the others
    others_.clear();
  }

  std::vector<const PartResults*> step(const Trainer& trainer) override {
    trainer_ = &trainer;
    HostReplica& first = *replicas_[0];
    work(first);
    {
      const Timeline::Span span(first.timeline, Phase::wait);
      group_.barrier().wait();
    }
    std::vector<const PartResults*> out;
    for (const auto& replica : replicas_) {
      if (replica->failure != nullptr) std::rethrow_exception(replica->failure);
      out.push_back(&replica->worker->results());
    }
    return out;
  }

  std::vector<Timeline*> timelines() override {
    std::vector<Timeline*> out;
    for (const auto& replica : replicas_) out.push_back(&replica->timeline);
    return out;
  }

  std::vector<Timeline*> details() override {
    std::vector<Timeline*> out;
    for (const auto& replica : replicas_) out.push_back(&replica->kernels);
    return out;
  }

  Tensor read(size_t state) const override { return read_state(settings_, *replicas_[0], state); }
  void write(size_t state, const Tensor& value) override {
    for (const auto& replica : replicas_) write_state(settings_, *replica, state, value);
  }

 private:
  enum class Begun : uint8_t { not_yet, yes, never };
  void tell(Begun now) {
    begun_ = now;
    begun_.notify_all();
  }

  // One step after another, beside the other replicas, until replica 0 says that it is enough.
  void work(HostReplica& replica) {
    const auto meet = [&] {
      const Timeline::Span span(replica.timeline, Phase::wait);
      group_.barrier().wait();
    };
    while (true) {
      meet();  // the next batch is known, and all states are those of the last update
      if (!goes_on_) return;
      compute_part(replica);
      meet();  // all gradients are there
      if (trainer_->next().kind.training) update(replica);
      if (replica.rank == 0) return;  // goes on in step()
      meet();                         // nobody changes states any more
    }
  }

  // A replica that has failed comes to every meeting all the same, so that nobody waits for it in vain.
  void compute_part(HostReplica& replica) {
    try {
      replica.worker->compute(*trainer_);
    } catch (...) {
      replica.failure = std::current_exception();
      group_.give_up();
    }
  }

  void update(HostReplica& replica) {
    try {
      update_range(settings_, replica);
    } catch (...) {
      replica.failure = std::current_exception();
    }
  }

  ReplicaSettings settings_;
  ThreadGroup group_;
  StateBuffers shared_;  // states that replicas divide
  std::vector<std::unique_ptr<HostReplica>> replicas_;
  const Trainer* trainer_ = nullptr;  // of the step at hand; written by replica 0 between barriers
  bool goes_on_ = true;
  std::atomic<Begun> begun_ = Begun::not_yet;
  std::vector<std::jthread> others_;
};

}  // namespace

std::unique_ptr<Replicas> thread_replicas(const ReplicaSettings& settings) { return std::make_unique<ThreadReplicas>(settings); }

}  // namespace tutti
