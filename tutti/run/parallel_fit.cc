#include "tutti/run/parallel_fit.h"

#include <algorithm>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/device/host.h"
#include "tutti/transform/replicate.h"

namespace tutti {

// What a replica does once all parts' sums are there.
struct ParallelFit::Update {
  std::unique_ptr<Program> program;
  std::vector<std::unique_ptr<Buffer>> views;
  std::vector<Buffer*> inputs;
};

struct ParallelFit::Replica {
  size_t rank;
  Timeline timeline;
  StateBuffers states, updated;  // as its part sees them, and as its update does
  std::unique_ptr<PartWorker> worker;
  Update update;
  std::exception_ptr failure;
};

ParallelFit::ParallelFit(Trainer& trainer, std::shared_ptr<Device> device, const ParallelPlan& plan, const ParallelOptions& options,
                         std::shared_ptr<RankGroup> ranks)
    : trainer_(trainer), plan_(plan), ranks_(std::move(ranks)) {
  if (device->is_asynchronous()) fail<Unsupported>("fit", "several devices of '{}' are not done; hint: --device cpu", device->name());
  const PartOptions parts{plan.replicas, plan.accumulate > 1, options.synchronizes};
  programs_ = std::make_shared<PartPrograms>(trainer, std::move(device), plan.threads, parts);
  trainer.describe(programs_->facts(), programs_->states());
  trainer.attach(this);
  buckets_ = buckets_of(programs_->sums());
  const std::vector<Tensor> values = trainer.first_values(programs_->states());
  const bool keeps_spans = !options.trace.empty();
  if (ranks_ != nullptr) {
    replicas_.push_back(std::make_unique<Replica>());
    replicas_[0]->timeline = Timeline(ranks_->rank(), keeps_spans);
    make_replica(static_cast<size_t>(ranks_->rank()), 0, values);
    return;
  }
  const int cores = thread_limit(), count = static_cast<int>(plan.replicas);
  threads_ = std::make_unique<ThreadGroup>(count, count * plan.threads <= cores);
  for (int i = 0; i < count; ++i) {
    replicas_.push_back(std::make_unique<Replica>());
    replicas_.back()->timeline = Timeline(i, keeps_spans);
    make_replica(static_cast<size_t>(i), static_cast<size_t>(i), values);
  }
  // Each update reads all replicas' gradients.
  for (const auto& replica : replicas_) {
    const auto range = [&](int64_t elements) { return range_of_part(elements, static_cast<int64_t>(replica->rank), plan_.replicas); };
    const auto& types = replica->update.program->input_types();
    for (size_t i = 0; i < programs_->sums().size(); ++i)
      for (const auto& other : replicas_) {
        const size_t input = replica->update.inputs.size();
        const Type& type = types[input];
        const bool divided = !(type == programs_->sums()[i]);
        const int64_t first = divided ? range(programs_->sums()[i].shape.elements()).begin * byte_size(type.dtype) : 0;
        replica->update.views.push_back(std::make_unique<HostView>(type, other->worker->shared_sum(i), first));
        replica->update.inputs.push_back(replica->update.views.back().get());
      }
  }
}

ParallelFit::~ParallelFit() = default;

std::shared_ptr<Buffer> ParallelFit::allocate_filled(const Tensor& value) const {
  std::shared_ptr<Buffer> buffer = programs_->device()->allocate(value.type());
  programs_->device()->to_device(value.bytes(), *buffer);
  return buffer;
}

void ParallelFit::make_replica(size_t rank, size_t local, const std::vector<Tensor>& values) {
  Replica& replica = *replicas_[local];
  replica.rank = rank;
  // Ranks see no other's memory: each does the whole update.
  const SharedUpdate update = ranks_ != nullptr ? share_update(programs_->update(), 0, 1)
                                                : share_update(programs_->update(), static_cast<int64_t>(rank), plan_.replicas);
  const auto& names = programs_->states();
  for (size_t i = 0; i < names.size(); ++i) {
    const bool divided = std::find(update.divided_states.begin(), update.divided_states.end(), names[i]) != update.divided_states.end();
    if (!divided) {
      replica.states[names[i]] = replica.updated[names[i]] = allocate_filled(values[i]);
      continue;
    }
    std::shared_ptr<Buffer>& whole = shared_[names[i]];
    if (whole == nullptr) whole = allocate_filled(values[i]);
    replica.states[names[i]] = whole;
    const int64_t parts = ranks_ != nullptr ? 1 : plan_.replicas, part = ranks_ != nullptr ? 0 : static_cast<int64_t>(rank);
    const ElementRange range = range_of_part(values[i].elements(), part, parts);
    replica.updated[names[i]] =
        std::make_shared<HostView>(Type{values[i].dtype(), {range.size()}}, whole, range.begin * byte_size(values[i].dtype()));
  }
  CompileSettings settings;
  settings.threads = plan_.threads;
  settings.states = &replica.updated;
  replica.update.program = programs_->device()->compile(update.graph, settings);
  Collective* collective = ranks_ != nullptr ? static_cast<Collective*>(ranks_.get()) : &threads_->member(static_cast<int>(rank));
  replica.worker =
      std::make_unique<PartWorker>(programs_, Division{rank, static_cast<size_t>(plan_.replicas), static_cast<size_t>(plan_.accumulate)},
                                   replica.states, plan_.replicas > 1 ? collective : nullptr, replica.timeline);
  if (ranks_ == nullptr) return;
  for (size_t i = 0; i < programs_->sums().size(); ++i) {
    const Type& type = replica.update.program->input_types()[i];
    replica.update.views.push_back(std::make_unique<HostView>(type, replica.worker->shared_sum(i), 0));
    replica.update.inputs.push_back(replica.update.views.back().get());
  }
}

Tensor ParallelFit::read(size_t state) const {
  Buffer& buffer = *replicas_[0]->states.at(programs_->states()[state]);
  Tensor out(buffer.type());
  programs_->device()->to_host(buffer, out.bytes());
  return out;
}

void ParallelFit::write(size_t state, const Tensor& value) {
  for (const auto& replica : replicas_) programs_->device()->to_device(value.bytes(), *replica->states.at(programs_->states()[state]));
}

std::vector<const Timeline*> ParallelFit::timelines() const {
  std::vector<const Timeline*> out;
  for (const auto& replica : replicas_) out.push_back(&replica->timeline);
  return out;
}

void ParallelFit::forget_times() {
  for (const auto& replica : replicas_) replica->timeline.clear();
  step_seconds_.clear();
}

double ParallelFit::undisturbed_step() const {
  if (step_seconds_.empty()) return 0;
  std::vector<float> sorted = step_seconds_;
  const auto place = sorted.begin() + std::ssize(sorted) / 20;
  std::nth_element(sorted.begin(), place, sorted.end());
  return static_cast<double>(*place);
}

// Of a sum of all gradients, each replica sends and gets all but its own part, twice.
double ParallelFit::exchanged_bytes() const {
  double bytes = 0;
  for (const Type& type : programs_->sums()) bytes += static_cast<double>(type.bytes());
  return 2 * bytes * static_cast<double>(plan_.replicas - 1) / static_cast<double>(plan_.replicas);
}

// A replica that has failed comes to every meeting all the same, so that nobody waits for it in vain.
void ParallelFit::compute_part(Replica& replica) {
  try {
    replica.worker->compute(trainer_);
  } catch (...) {
    replica.failure = std::current_exception();
    threads_->give_up();
  }
}

void ParallelFit::update(Replica& replica) {
  {
    const Timeline::Span span(replica.timeline, Phase::exchange);
    replica.timeline.slow_down_exchange(exchanged_bytes());
  }
  const Timeline::Span span(replica.timeline, Phase::update);
  try {
    replica.update.program->run(replica.update.inputs, {});
  } catch (...) {
    replica.failure = std::current_exception();
  }
}

// Sums of all parts' results, in their order, to the trainer. Whether it goes on.
bool ParallelFit::take(const Stepped& stepped, std::span<const std::vector<std::vector<double>>* const> parts) {
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

// One step after another, beside the other replicas, until replica 0 says that it is enough.
void ParallelFit::work(Replica& replica) {
  Barrier& barrier = threads_->barrier();
  const auto meet = [&] {
    const Timeline::Span span(replica.timeline, Phase::wait);
    barrier.wait();
  };
  while (true) {
    meet();  // the next batch is known, and all states are those of the last update
    if (!goes_on_) return;
    compute_part(replica);
    meet();  // all gradients are there
    if (training_) update(replica);
    if (replica.rank == 0) return;  // goes on in run()
    meet();                         // nobody changes states any more
  }
}

void ParallelFit::run(const Stepped& stepped) {
  if (ranks_ != nullptr) return work_as_rank(stepped);
  std::vector<std::jthread> others;
  goes_on_ = true;
  for (size_t i = 1; i < replicas_.size(); ++i) others.emplace_back([this, i] { work(*replicas_[i]); });
  Replica& first = *replicas_[0];
  std::vector<const std::vector<std::vector<double>>*> parts;
  for (const auto& replica : replicas_) parts.push_back(&replica->worker->results());
  std::exception_ptr failure;
  while (goes_on_) {
    const bool was_training = training_ = trainer_.next().kind.training;
    const auto begin = Timeline::Clock::now();
    work(first);
    {
      const Timeline::Span span(first.timeline, Phase::wait);
      threads_->barrier().wait();
    }
    for (const auto& replica : replicas_)
      if (replica->failure != nullptr && failure == nullptr) failure = replica->failure;
    const auto computed = Timeline::Clock::now();
    trainer_.add_seconds(std::chrono::duration<double>(computed - begin).count());
    try {
      goes_on_ = failure == nullptr && take(stepped, parts) && !trainer_.is_done();
    } catch (...) {
      failure = std::current_exception();
      goes_on_ = false;
    }
    const auto end = Timeline::Clock::now();
    first.timeline.add(Phase::host, computed, end);
    if (was_training) step_seconds_.push_back(std::chrono::duration<float>(end - begin).count());
  }
  work(first);  // tells the others
  others.clear();
  if (failure) std::rethrow_exception(failure);
}

void ParallelFit::work_as_rank(const Stepped& stepped) {
  Replica& own = *replicas_[0];
  std::vector<size_t> bucket_of(programs_->sums().size());
  for (size_t b = 0; b < buckets_.size(); ++b)
    for (size_t i : buckets_[b]) bucket_of[i] = b;
  bool goes_on = true;
  while (goes_on) {
    const bool training = trainer_.next().kind.training;
    const auto begin = Timeline::Clock::now();
    std::vector<size_t> left;
    for (const auto& bucket : buckets_) left.push_back(bucket.size());
    size_t next = 0;  // buckets start in one order, in all ranks
    own.worker->compute(trainer_, [&](size_t sum) {
      --left[bucket_of[sum]];
      for (; next < buckets_.size() && left[next] == 0; ++next) {
        std::vector<Collective::Part> parts;
        for (size_t i : buckets_[next]) {
          Buffer& buffer = own.worker->sum(i);
          parts.push_back({buffer.host().data(), buffer.host().data(), buffer.type().shape.elements()});
        }
        ranks_->start(std::move(parts));
      }
    });
    if (training) {
      {
        const Timeline::Span span(own.timeline, Phase::exchange);
        ranks_->finish();
        own.timeline.slow_down_exchange(exchanged_bytes());
      }
      const Timeline::Span span(own.timeline, Phase::update);
      own.update.program->run(own.update.inputs, {});
    }
    const auto computed = Timeline::Clock::now();
    // Every rank is told all results, and adds them up in the same order.
    std::vector<double> flat;
    for (const auto& output : own.worker->results()) flat.insert(flat.end(), output.begin(), output.end());
    const std::vector<double> all = ranks_->gather(flat);
    std::vector<std::vector<std::vector<double>>> parts(static_cast<size_t>(ranks_->size()));
    std::vector<const std::vector<std::vector<double>>*> pointers;
    for (size_t r = 0, at = 0; r < parts.size(); ++r) {
      for (const auto& output : own.worker->results()) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(at);
        parts[r].emplace_back(from, from + std::ssize(output));
        at += output.size();
      }
      pointers.push_back(&parts[r]);
    }
    const auto told = Timeline::Clock::now();
    own.timeline.add(Phase::wait, computed, told);
    trainer_.add_seconds(std::chrono::duration<double>(told - begin).count());
    // Whether all go on is one decision.
    const double wants = take(stepped, pointers) && !trainer_.is_done() ? 1 : 0;
    own.timeline.add(Phase::host, told, Timeline::Clock::now());
    const std::vector<double> votes = ranks_->gather({&wants, 1});
    if (training) step_seconds_.push_back(std::chrono::duration<float>(Timeline::Clock::now() - begin).count());
    goes_on = std::all_of(votes.begin(), votes.end(), [](double vote) { return vote > 0; });
  }
}

}  // namespace tutti
