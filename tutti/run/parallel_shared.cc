// Replicas that are processes of one machine: as those that are threads, each updates its own range of weights and optimizer variables
// that all of them see, reading the others' gradients where they lie.
#include <algorithm>
#include <new>

#include "tutti/base/error.h"
#include "tutti/device/host.h"
#include "tutti/run/parallel_host.h"
#include "tutti/transform/replicate.h"

namespace tutti {

namespace {

// What lies where in the memory that the ranks share, in bytes from its beginning.
struct SharedPlaces {
  explicit SharedPlaces(const ReplicaSettings& settings) {
    const PartPrograms& programs = *settings.programs;
    const auto replicas = static_cast<size_t>(settings.plan.replicas);
    barrier = take(sizeof(Barrier));
    failed = take(sizeof(std::atomic<int>));
    votes = take(replicas * sizeof(double));
    numbers = static_cast<size_t>(programs.result_elements());
    results = take(replicas * numbers * sizeof(double));
    for (size_t r = 0; r < replicas; ++r)
      for (const Type& type : programs.sums()) sums.push_back(take(static_cast<size_t>(type.bytes())));
    const std::vector<std::string> divided = share_update(programs.update(), 0, settings.plan.replicas).divided_states;
    const std::vector<Tensor> values = settings.trainer.first_values(programs.states());
    for (size_t i = 0; i < values.size(); ++i)
      if (const std::string& name = programs.states()[i]; std::find(divided.begin(), divided.end(), name) != divided.end())
        states[name] = {values[i], take(values[i].bytes().size())};
  }

  struct State {
    Tensor first;
    size_t place;
  };
  size_t bytes = 0;
  size_t barrier, failed, votes, results;
  size_t numbers;            // of results, a replica
  std::vector<size_t> sums;  // by replica, then as the programs have them
  std::map<std::string, State> states;

 private:
  size_t take(size_t size) {
    constexpr size_t line = 64;
    const size_t place = bytes;
    bytes += (size + line - 1) / line * line;
    return place;
  }
};

class SharedReplicas : public Replicas {
 public:
  SharedReplicas(const ReplicaSettings& settings, std::shared_ptr<RankGroup> ranks, SharedPlaces places, std::shared_ptr<std::byte> memory)
      : memory_(std::move(memory)), places_(std::move(places)), settings_(settings), ranks_(std::move(ranks)), rank_(own_rank()) {
    const auto replicas = static_cast<size_t>(ranks_->size());
    if (rank_ == 0) {
      new (memory_.get() + places_.barrier) Barrier(ranks_->size(), settings.plan.replicas * settings.plan.threads <= machine_cores());
      new (memory_.get() + places_.failed) std::atomic<int>(0);
    }
    StateBuffers shared;
    for (const auto& [name, state] : places_.states) {
      shared[name] = buffer_at(state.first.type(), state.place);
      if (rank_ == 0) settings.programs->device()->to_device(state.first.bytes(), *shared[name]);
    }
    const auto& types = settings.programs->sums();
    std::vector<SumBuffers> sums(replicas);
    for (size_t i = 0; i < places_.sums.size(); ++i) sums[i / types.size()].push_back(buffer_at(types[i % types.size()], places_.sums[i]));
    own_ = make_host_replica(settings_, rank_, true, *ranks_, shared, sums[rank_]);
    see_all_sums(settings_, *own_, sums);
    all_.resize(replicas);
    const double here = 1;
    ranks_->gather({&here, 1});  // all that rank 0 has written is there
  }

  void begin() override { meet(); }

  std::vector<const PartResults*> step(const Trainer& trainer) override {
    tell_failure([&] { own_->worker->compute(trainer); });
    tell_results();
    meet();  // all gradients and results are there
    std::vector<const PartResults*> out = take_results();
    if (trainer.next().kind.training) tell_failure([&] { update_range(settings_, *own_); });
    meet();  // nobody changes states any more
    return out;
  }

  bool agree(bool goes_on) override {
    const std::span<double> votes{numbers_at(places_.votes), all_.size()};
    votes[rank_] = goes_on ? 1 : 0;
    meet();
    return std::all_of(votes.begin(), votes.end(), [](double vote) { return vote > 0; });
  }

  std::vector<Timeline*> timelines() override { return {&own_->timeline}; }
  std::vector<Timeline*> details() override { return {&own_->kernels}; }
  Json json() const override { return JsonMembers{{"shared_bytes", static_cast<int64_t>(places_.bytes)}}; }

  Tensor read(size_t state) const override { return read_state(settings_, *own_, state); }
  // All ranks are given the same; they meet before the next step.
  void write(size_t state, const Tensor& value) override {
    if (rank_ == 0 || !places_.states.contains(settings_.programs->states()[state])) write_state(settings_, *own_, state, value);
  }

 private:
  size_t own_rank() const { return static_cast<size_t>(ranks_->rank()); }
  double* numbers_at(size_t place) const { return reinterpret_cast<double*>(memory_.get() + place); }
  std::atomic<int>& failed() const { return *reinterpret_cast<std::atomic<int>*>(memory_.get() + places_.failed); }

  std::shared_ptr<Buffer> buffer_at(const Type& type, size_t place) const {
    auto out = std::make_shared<BorrowedBuffer>(type);
    out->point_at(memory_.get() + place);
    return out;
  }

  void meet() {
    const Timeline::Span span(own_->timeline, Phase::wait);
    const auto fails = [this] { return failed() != 0; };
    if (ranks_->meet(*reinterpret_cast<Barrier*>(memory_.get() + places_.barrier), fails)) return;
    const int other = failed() - 1;
    fail<DeviceError>("mpi", "rank {} on {} has failed", other, ranks_->host(other));
  }

  // The others do not wait for one that has failed.
  template <class Work>
  void tell_failure(const Work& work) {
    try {
      work();
    } catch (...) {
      failed() = static_cast<int>(rank_) + 1;
      throw;
    }
  }

  void tell_results() {
    double* to = numbers_at(places_.results) + rank_ * places_.numbers;
    size_t count = 0;
    for (const auto& output : own_->worker->results()) count += output.size();
    if (count > places_.numbers) fail<InternalError>("fit", "{} results of a part; planned for {}", count, places_.numbers);
    for (const auto& output : own_->worker->results()) to = std::copy(output.begin(), output.end(), to);
  }

  // Every rank adds them up, in the same order.
  std::vector<const PartResults*> take_results() {
    std::vector<const PartResults*> out;
    for (size_t r = 0; r < all_.size(); ++r) {
      const double* from = numbers_at(places_.results) + r * places_.numbers;
      all_[r] = shaped_like(own_->worker->results(), from);
      out.push_back(&all_[r]);
    }
    return out;
  }

  std::shared_ptr<std::byte> memory_;  // held longest: buffers point there
  SharedPlaces places_;
  ReplicaSettings settings_;
  std::shared_ptr<RankGroup> ranks_;
  size_t rank_;
  std::unique_ptr<HostReplica> own_;
  std::vector<PartResults> all_;  // by rank, of the step at hand
};

}  // namespace

std::unique_ptr<Replicas> shared_replicas(const ReplicaSettings& settings, std::shared_ptr<RankGroup> ranks) {
  SharedPlaces places(settings);
  auto memory = ranks->share(places.bytes);
  if (memory == nullptr) return nullptr;
  return std::make_unique<SharedReplicas>(settings, std::move(ranks), std::move(places), std::move(memory));
}

}  // namespace tutti
