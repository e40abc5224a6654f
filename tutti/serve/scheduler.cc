#include "tutti/serve/scheduler.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tutti/base/start_thread.h"
#include "tutti/data/rows.h"
#include "tutti/serve/batch_run.h"
#include "tutti/serve/doorbell.h"
#include "tutti/serve/spin.h"

namespace tutti::serve {

namespace {

void end_unqueued(PendingRequest& pending, FailureKind kind, const std::string& message) {
  const auto age = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - pending.submitted).count();
  pending.request.model->statistics().add_failure(kind, age);
  auto done = std::move(pending.request.done);
  done({{kind, message}, {}, age});
}

Rows rows_of_inputs(const std::vector<Tensor>& inputs) {
  Rows rows;
  rows.reserve(inputs.size());
  for (const Tensor& input : inputs) rows.push_back(row_of(input.shape()));
  return rows;
}

}  // namespace

class Scheduler::Owner {
 public:
  explicit Owner(const SchedulerOptions& options) : options_(options) {
    try {
      compiler_ = start_thread([this] { compile(); });
      timer_ = start_thread([this] { watch_deadlines(); });
      owner_ = start_thread([this] { own(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Owner() { stop(); }

  const SchedulerOptions& options() const { return options_; }
  uint64_t new_client() { return ++clients_; }
  void watch(int descriptor) { bell_.watch(descriptor); }
  void unwatch(int descriptor) { bell_.unwatch(descriptor); }

  Ticket submit(Request&& request) {
    Pending pending;
    try {
      if (request.model == nullptr) refuse(FailureKind::not_found, "a request names no model");
      const int64_t samples = request.model->check(request.inputs);
      Rows rows = rows_of_inputs(request.inputs);
      pending = std::make_shared<PendingRequest>(std::move(request), samples, std::move(rows));
    } catch (const RequestError& e) {
      if (request.model != nullptr) request.model->statistics().add_failure(e.kind, 0);
      request.done({e.failure(), {}});
      return {};
    } catch (const std::exception& e) {
      request.done({{FailureKind::failed, e.what()}, {}});
      return {};
    }
    FailureKind refused = FailureKind::none;
    {
      std::scoped_lock lock(mutex_);
      if (draining_)
        refused = FailureKind::draining;
      else if (queue_.size() >= options_.queue)
        refused = FailureKind::queue_full;
      else if (pending->request.deadline && *pending->request.deadline <= pending->submitted)
        refused = FailureKind::deadline;
      else
        enqueue(pending);
    }
    if (refused == FailureKind::none) {
      if (asleep_) wake();
      return pending;
    }
    end_unqueued(*pending, refused,
                 refused == FailureKind::draining ? "[serve] the server ends, and takes no more requests"
                 : refused == FailureKind::queue_full
                     ? fmt::format("[serve] {} requests are queued already; hint: later, or --queue", options_.queue)
                     : deadline_text);
    return {};
  }

  void cancel(const Ticket& ticket) {
    if (const Pending pending = ticket.lock()) end_queued({pending}, FailureKind::cancelled, "[serve] cancelled");
  }

  void cancel_client(uint64_t client) {
    std::vector<Pending> requests;
    {
      std::scoped_lock lock(mutex_);
      requests = queue_.of_client(client);
      for (const Pending& pending : computing_)
        if (pending->request.client == client) requests.push_back(pending);
    }
    end_queued(requests, FailureKind::cancelled, "[serve] cancelled: its client is gone");
  }

  bool drain(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    draining_ = true;
    wake();  // a batch may be waiting for more
    return idle_.wait_for(lock, timeout, [&] { return queue_.size() == 0 && computing_.empty(); });
  }

  void stop() {
    std::vector<Pending> left;
    {
      std::scoped_lock lock(mutex_);
      draining_ = ending_ = true;
      left = queue_.all();
    }
    end_queued(left, FailureKind::draining, "[serve] the server ended before it was computed");
    wake();
    jobs_changed_.notify_all();
    deadlines_changed_.notify_all();
    for (std::thread* thread : {&owner_, &timer_, &compiler_})
      if (thread->joinable()) thread->join();
  }

  Load load() const {
    std::scoped_lock lock(mutex_);
    return {queue_.size(), static_cast<int64_t>(computing_.size()), draining_};
  }

  void add_source(RequestSource* source) {
    {
      std::scoped_lock lock(sources_mutex_);
      sources_.push_back(source);
    }
    wake();
  }

  void remove_source(RequestSource* source) {
    std::scoped_lock lock(sources_mutex_);
    std::erase(sources_, source);
  }

  void wake() { bell_.ring(); }

 private:
  static constexpr const char* deadline_text = "[serve] the deadline passed before it was computed";
  struct Job {
    std::shared_ptr<ModelVersion> model;
    Rows rows;
    int64_t size;
  };

  // With the lock.
  void enqueue(const Pending& pending, bool first_of_client = false) {
    ++arrivals_;
    if (first_of_client)
      queue_.push_first(pending);
    else
      queue_.push(pending);
    if (!pending->request.deadline) return;
    const bool first = deadlines_.empty() || *pending->request.deadline < deadlines_.begin()->first;
    deadlines_.emplace(*pending->request.deadline, pending);
    if (first) deadlines_changed_.notify_one();
  }

  void forget_deadline(const PendingRequest& pending) {
    if (!pending.request.deadline) return;
    auto [begin, end] = deadlines_.equal_range(*pending.request.deadline);
    for (; begin != end; ++begin)
      if (begin->second.get() == &pending) {
        deadlines_.erase(begin);
        return;
      }
  }

  // Those of them that are still queued.
  void end_queued(const std::vector<Pending>& requests, FailureKind kind, const char* text) {
    std::vector<Pending> ended;
    {
      std::scoped_lock lock(mutex_);
      for (const Pending& pending : requests) {
        if (!pending->queued) {
          pending->unwanted = pending->unwanted || kind == FailureKind::cancelled;
          continue;
        }
        queue_.remove(*pending);
        forget_deadline(*pending);
        ended.push_back(pending);
      }
      if (queue_.size() == 0 && computing_.empty()) idle_.notify_all();
    }
    for (const Pending& pending : ended) end_unqueued(*pending, kind, text);
  }

  void watch_deadlines() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
      if (deadlines_.empty()) {
        deadlines_changed_.wait(lock);
        continue;
      }
      const auto first = deadlines_.begin()->first;
      if (Clock::now() < first) {
        deadlines_changed_.wait_until(lock, first);
        continue;
      }
      lock.unlock();
      end_late();
      lock.lock();
    }
  }

  // By the timer, or by the owner before it takes what the timer has not come to yet.
  void end_late() {
    std::vector<Pending> late;
    {
      std::scoped_lock lock(mutex_);
      for (const auto& [deadline, pending] : deadlines_) {
        if (deadline > Clock::now()) break;
        late.push_back(pending);
      }
    }
    if (!late.empty()) end_queued(late, FailureKind::deadline, deadline_text);
  }

  // Programs that are wanted, one after the other, while the owner goes on with those that are there.
  void compile() {
    std::unique_lock lock(mutex_);
    for (;;) {
      jobs_changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      const Job job = jobs_.front();
      lock.unlock();
      job.model->programs().compile(job.rows, job.size);
      lock.lock();
      jobs_.pop_front();
      waiting_.erase(job.model.get());
      wake();
    }
  }

  // With the lock.
  void want(const std::shared_ptr<ModelVersion>& model, const Rows& rows, int64_t size) {
    const auto same = [&](const Job& job) { return job.model == model && job.rows == rows && job.size == size; };
    if (std::any_of(jobs_.begin(), jobs_.end(), same)) return;
    jobs_.push_back({model, rows, size});
    jobs_changed_.notify_one();
  }

  // A batch that was full, or had waited, may be computed in parts: the rest of it does not wait again.
  Clock::time_point waited_enough(const ModelVersion& model, Clock::time_point submitted) const {
    const auto found = let_go_.find(&model);
    return found != let_go_.end() && submitted <= found->second ? submitted : Clock::time_point::max();
  }

  // The batch whose turn it is. Where none is ready: `due`, when one will be without any news.
  std::optional<Batch> next_batch(std::optional<Clock::time_point>& due) {
    std::scoped_lock lock(mutex_);
    arrivals_seen_ = arrivals_;
    std::set<const ModelVersion*> passed = waiting_;
    while (PendingRequest* first = queue_.next(passed)) {
      const auto model = first->request.model;
      const bool together = model->is_batched();
      const int64_t ready = together ? std::min(queue_.samples_like(*first), model->largest_batch()) : first->samples;
      if (together && ready < model->largest_batch() && !draining_) {
        const auto then = std::min(first->submitted + options_.max_wait, waited_enough(*model, first->submitted));
        if (Clock::now() < then) {
          due = due ? std::min(*due, then) : then;
          passed.insert(model.get());
          continue;
        }
      }
      if (options_.max_wait.count() > 0) let_go_[model.get()] = Clock::now();
      const auto choice = model->programs().choose(first->rows, ready);
      if (choice.wanted != 0) want(model, first->rows, choice.wanted);
      if (choice.program == nullptr && !choice.failure) {
        waiting_.insert(model.get());
        passed.insert(model.get());
        continue;
      }
      // A request that fits into one batch is not parted, whichever program is there for it.
      const int64_t most = std::max(choice.samples, std::min(first->remaining(), ready));
      Batch batch{model, queue_.take(*first, most)};
      for (const Pending& pending : batch.requests) {
        batch.samples += pending->remaining();
        forget_deadline(*pending);
      }
      if (together) batch.samples = std::min(batch.samples, most);
      computing_ = batch.requests;
      return batch;
    }
    return {};
  }

  // What is left of a request goes back to the head of its client's queue.
  void finish_batch(const Pending& unfinished) {
    std::vector<Pending> let_go;  // without the lock
    FailureKind kind = FailureKind::none;
    {
      std::scoped_lock lock(mutex_);
      let_go.swap(computing_);
      if (unfinished != nullptr) {
        kind = ending_ ? FailureKind::draining : unfinished->unwanted ? FailureKind::cancelled : FailureKind::none;
        if (kind == FailureKind::none) enqueue(unfinished, true);
      }
      if (queue_.size() == 0) {
        let_go_.clear();
        idle_.notify_all();
      }
    }
    if (kind != FailureKind::none) end_unqueued(*unfinished, kind, "[serve] given up before all of it was computed");
  }

  bool poll_sources() {
    std::scoped_lock lock(sources_mutex_);
    bool any = false;
    for (RequestSource* source : sources_) any = source->poll() || any;
    return any;
  }

  void tell_sources(bool sleeping) {
    std::scoped_lock lock(sources_mutex_);
    for (RequestSource* source : sources_) source->asleep(sleeping);
  }

  void own() {
    auto idle_since = Clock::now();
    bool idle = false;
    for (;;) {
      const bool arrived = poll_sources();
      end_late();
      std::optional<Clock::time_point> due;
      if (auto batch = next_batch(due)) {
        if (std::exchange(idle, false)) spin_.add(Clock::now() - idle_since);
        const Pending rest_of_it = run(*batch);
        batch.reset();  // what it held may be freed now
        finish_batch(rest_of_it);
        continue;
      }
      {
        std::scoped_lock lock(mutex_);
        if (ending_) return;
      }
      if (arrived) continue;
      if (!std::exchange(idle, true)) idle_since = Clock::now();
      rest(idle_since, due);
    }
  }

  // A little while awake, where requests come that fast, then asleep.
  void rest(Clock::time_point idle_since, std::optional<Clock::time_point> due) {
    if (const auto now = Clock::now(); spin_.is_worth_it(now, idle_since)) return spin_.pause(now);
    asleep_ = true;
    tell_sources(true);
    bool something = poll_sources();
    const auto now = Clock::now();
    {
      std::scoped_lock lock(mutex_);
      // What there is waits for more, until it is due.
      something = something || ending_ || (due ? *due <= now || arrivals_ != arrivals_seen_ : queue_.next(waiting_) != nullptr);
    }
    if (!something) bell_.wait(due ? std::optional(std::chrono::nanoseconds(*due - now)) : std::nullopt);
    asleep_ = false;
    tell_sources(false);
  }

  const SchedulerOptions options_;
  Doorbell bell_;
  std::atomic<uint64_t> clients_ = 0;
  std::atomic<bool> asleep_ = false;

  mutable std::mutex mutex_;  // of what follows
  RequestQueue queue_;
  std::multimap<Clock::time_point, Pending> deadlines_;
  std::deque<Job> jobs_;
  std::set<const ModelVersion*> waiting_;                    // for a program
  std::map<const ModelVersion*, Clock::time_point> let_go_;  // when a batch last stopped waiting for more
  std::vector<Pending> computing_;
  uint64_t arrivals_ = 0, arrivals_seen_ = 0;  // in the queue, ever, and when a batch was last looked for
  bool draining_ = false, ending_ = false;
  std::condition_variable idle_, deadlines_changed_, jobs_changed_;

  std::mutex sources_mutex_;
  std::vector<RequestSource*> sources_;
  Spin spin_{options_.spin};  // of the owner's thread

  std::thread owner_, timer_, compiler_;
};

Scheduler::Scheduler(const SchedulerOptions& options) : owner_(std::make_unique<Owner>(options)) {}
Scheduler::~Scheduler() = default;
uint64_t Scheduler::new_client() { return owner_->new_client(); }
Ticket Scheduler::submit(Request request) { return owner_->submit(std::move(request)); }
void Scheduler::cancel(const Ticket& ticket) { owner_->cancel(ticket); }
void Scheduler::cancel_client(uint64_t client) { owner_->cancel_client(client); }
bool Scheduler::drain(std::chrono::milliseconds timeout) { return owner_->drain(timeout); }
void Scheduler::stop() { owner_->stop(); }
Scheduler::Load Scheduler::load() const { return owner_->load(); }
const SchedulerOptions& Scheduler::options() const { return owner_->options(); }
void Scheduler::add_source(RequestSource* source) { owner_->add_source(source); }
void Scheduler::remove_source(RequestSource* source) { owner_->remove_source(source); }
void Scheduler::wake() { owner_->wake(); }
void Scheduler::watch(int descriptor) { owner_->watch(descriptor); }
void Scheduler::unwatch(int descriptor) { owner_->unwatch(descriptor); }

}  // namespace tutti::serve
