// Replicas that are processes: one of them is this one, and the others are asked through run/communicator.h.
#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/device/host.h"
#include "tutti/run/parallel_host.h"
#include "tutti/transform/replicate.h"

namespace tutti {

namespace {

class RankReplicas : public Replicas {
 public:
  RankReplicas(const ReplicaSettings& settings, std::shared_ptr<RankGroup> ranks) : settings_(settings), ranks_(std::move(ranks)) {
    StateBuffers shared;
    own_ = make_host_replica(settings_, static_cast<size_t>(ranks_->rank()), false, *ranks_, shared);
    const auto& sums = settings_.programs->sums();
    for (size_t i = 0; i < sums.size(); ++i) {
      const Type& type = own_->update.program->input_types()[i];
      own_->update.views.push_back(std::make_unique<HostView>(type, own_->worker->shared_sum(i), 0));
      own_->update.inputs.push_back(own_->update.views.back().get());
    }
    buckets_ = buckets_of(sums);
    bucket_of_.resize(sums.size());
    for (size_t b = 0; b < buckets_.size(); ++b)
      for (size_t i : buckets_[b]) bucket_of_[i] = b;
    all_.resize(static_cast<size_t>(ranks_->size()));
  }

  std::vector<const PartResults*> step(const Trainer& trainer) override {
    compute(trainer);
    if (trainer.next().kind.training) {
      {
        const Timeline::Span span(own_->timeline, Phase::exchange);
        ranks_->finish();
        own_->timeline.slow_down_exchange(exchanged_bytes(*settings_.programs, settings_.plan.replicas));
      }
      const Timeline::Span span(own_->timeline, Phase::update);
      own_->update.program->run(own_->update.inputs, {});
    }
    const Timeline::Span span(own_->timeline, Phase::wait);
    return gather_results();
  }

  bool agree(bool goes_on) override {
    const double wants = goes_on ? 1 : 0;
    const std::vector<double> votes = ranks_->gather({&wants, 1});
    return std::all_of(votes.begin(), votes.end(), [](double vote) { return vote > 0; });
  }

  std::vector<Timeline*> timelines() override { return {&own_->timeline}; }
  Tensor read(size_t state) const override { return read_state(settings_, *own_, state); }
  void write(size_t state, const Tensor& value) override { write_state(settings_, *own_, state, value); }

 private:
  // Buckets start in one order, in all ranks, while the backward pass goes on.
  void compute(const Trainer& trainer) {
    std::vector<size_t> left;
    for (const auto& bucket : buckets_) left.push_back(bucket.size());
    size_t next = 0;
    own_->worker->compute(trainer, [&](size_t sum) {
      --left[bucket_of_[sum]];
      for (; next < buckets_.size() && left[next] == 0; ++next) start(buckets_[next]);
    });
  }

  void start(const std::vector<size_t>& bucket) {
    std::vector<Collective::Part> parts;
    for (size_t i : bucket) {
      Buffer& buffer = own_->worker->sum(i);
      parts.push_back({buffer.host().data(), buffer.host().data(), buffer.type().shape.elements()});
    }
    ranks_->start(std::move(parts));
  }

  // Every rank is told all results, and adds them up in the same order.
  std::vector<const PartResults*> gather_results() {
    std::vector<double> flat;
    for (const auto& output : own_->worker->results()) flat.insert(flat.end(), output.begin(), output.end());
    const std::vector<double> values = ranks_->gather(flat);
    std::vector<const PartResults*> out;
    auto at = values.begin();
    for (PartResults& results : all_) {
      results.clear();
      for (const auto& output : own_->worker->results()) {
        results.emplace_back(at, at + std::ssize(output));
        at += std::ssize(output);
      }
      out.push_back(&results);
    }
    return out;
  }

  ReplicaSettings settings_;
  std::shared_ptr<RankGroup> ranks_;
  std::unique_ptr<HostReplica> own_;
  std::vector<std::vector<size_t>> buckets_;
  std::vector<size_t> bucket_of_;  // by sum
  std::vector<PartResults> all_;   // by rank, of the step at hand
};

}  // namespace

std::unique_ptr<Replicas> rank_replicas(const ReplicaSettings& settings, std::shared_ptr<RankGroup> ranks) {
  return std::make_unique<RankReplicas>(settings, std::move(ranks));
}

}  // namespace tutti
