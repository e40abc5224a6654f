// Replicas that are processes, on one machine or many: gradients are exchanged by messages (run/communicator.h).
#include <algorithm>

#include "tutti/base/denormals.h"
#include "tutti/base/stopwatch.h"
#include "tutti/device/host.h"
#include "tutti/run/parallel_host.h"
#include "tutti/transform/replicate.h"

namespace tutti {

namespace {

class RankReplicas : public Replicas {
 public:
  RankReplicas(const ReplicaSettings& settings, std::shared_ptr<RankGroup> ranks)
      : settings_(settings), ranks_(std::move(ranks)), exchange_(ranks_->rank(), settings.keeps_spans, Timeline::Lane::exchange) {
    StateBuffers shared;
    own_ = make_host_replica(settings_, static_cast<size_t>(ranks_->rank()), false, *ranks_, shared);
    const auto& sums = settings_.programs->sums();
    for (size_t i = 0; i < sums.size(); ++i) {
      const Type& type = own_->update.program->input_types()[i];
      own_->update.views.push_back(std::make_unique<HostView>(type, own_->worker->sums()[i], 0));
      own_->update.inputs.push_back(own_->update.views.back().get());
    }
    for (const Type& type : sums) bytes_ += type.bytes();
    bucket_ = settings.bucket > 0 ? settings.bucket : choose_bucket();
    buckets_ = buckets_of(sums, bucket_);
    bucket_of_.resize(sums.size());
    for (size_t b = 0; b < buckets_.size(); ++b)
      for (size_t i : buckets_[b]) bucket_of_[i] = b;
    all_.resize(static_cast<size_t>(ranks_->size()));
    ranks_->watch(&exchange_);
  }
  ~RankReplicas() override { ranks_->watch(nullptr); }

  std::vector<const PartResults*> step(const Trainer& trainer) override {
    compute(trainer);
    if (trainer.next().kind.training) {
      {
        const Timeline::Span span(own_->timeline, Phase::exchange);
        ranks_->finish();
      }
      const Timeline::Span span(own_->timeline, Phase::update);
      const FlushDenormals flushing;
      own_->update.program->run(own_->update.inputs, {});
    }
    const Timeline::Span span(own_->timeline, Phase::wait);
    return gather_results();
  }

  bool agree(bool goes_on) override { return ranks_->agree(goes_on); }

  std::vector<Timeline*> timelines() override { return {&own_->timeline}; }
  std::vector<Timeline*> details() override { return {&exchange_, &own_->kernels}; }

  // Of the exchange, what the rank did not wait for was hidden behind its backward pass.
  Json json() const override {
    const double all = exchange_.seconds(Phase::exchange), exposed = own_->timeline.seconds(Phase::exchange);
    Json out = JsonMembers{
        {"bytes", bytes_}, {"bucket_bytes", bucket_},    {"buckets", std::ssize(buckets_)},
        {"seconds", all},  {"exposed_seconds", exposed}, {"hidden", all > 0 ? Json(std::clamp(1 - exposed / all, 0.0, 1.0)) : Json()}};
    if (measured_) {
      out.set("latency_us", latency_ * 1e6);
      out.set("bytes_per_second", speed_);
    }
    return out;
  }
  Tensor read(size_t state) const override { return read_state(settings_, *own_, state); }
  void write(size_t state, const Tensor& value) override { write_state(settings_, *own_, state, value); }

 private:
  // Measured now, in a few milliseconds; all ranks take the slowest one's figures, so that all choose the same.
  int64_t choose_bucket() {
    constexpr size_t little = 16, much = size_t{1} << 18;  // floats
    constexpr int times = 5;
    if (bytes_ <= least_bucket_bytes) return least_bucket_bytes;
    std::vector<float> values(much);
    const auto fastest = [&](size_t count) {
      double best = 1e30;
      for (int i = 0; i < times; ++i) {
        auto* bytes = reinterpret_cast<std::byte*>(values.data());
        const Stopwatch watch;
        ranks_->start({{bytes, bytes, static_cast<int64_t>(count)}});
        ranks_->finish();
        best = std::min(best, watch.seconds());
      }
      return best;
    };
    const double own[] = {fastest(little), fastest(much)};
    const std::vector<double> all = ranks_->gather(own);
    double least = 0, most = 0;
    for (size_t i = 0; i < all.size(); i += 2) {
      least = std::max(least, all[i]);
      most = std::max(most, all[i + 1]);
    }
    measured_ = true;
    latency_ = least;
    speed_ = static_cast<double>(much * sizeof(float)) / std::max(most - least, 1e-9);
    // Whatever the link, a few of them: the last one has nothing to hide behind.
    constexpr int64_t few = 4;
    return std::min(bucket_for(latency_, speed_), std::max(least_bucket_bytes, bytes_ / few));
  }

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
    for (size_t r = 0; r < all_.size(); ++r) {
      all_[r] = shaped_like(own_->worker->results(), values.data() + r * flat.size());
      out.push_back(&all_[r]);
    }
    return out;
  }

  ReplicaSettings settings_;
  std::shared_ptr<RankGroup> ranks_;
  std::unique_ptr<HostReplica> own_;
  std::vector<std::vector<size_t>> buckets_;
  std::vector<size_t> bucket_of_;   // by sum
  int64_t bytes_ = 0, bucket_ = 0;  // of all sums; of a bucket, at least
  bool measured_ = false;
  double latency_ = 0, speed_ = 0;  // of an exchange: seconds, bytes a second
  Timeline exchange_;               // of the thread that exchanges
  std::vector<PartResults> all_;    // by rank, of the step at hand
};

}  // namespace

std::unique_ptr<Replicas> rank_replicas(const ReplicaSettings& settings, std::shared_ptr<RankGroup> ranks) {
  if (settings.exchange == Exchange::memory)
    if (auto made = shared_replicas(settings, ranks)) return made;
  return std::make_unique<RankReplicas>(settings, std::move(ranks));
}

}  // namespace tutti
