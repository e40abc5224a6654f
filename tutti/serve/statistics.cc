#include "tutti/serve/statistics.h"

#include <algorithm>

namespace tutti::serve {

std::string_view name(FailureKind kind) {
  constexpr std::string_view names[failure_kinds] = {"none",     "bad_request", "not_found", "not_ready", "queue_full",
                                                     "deadline", "cancelled",   "draining",  "failed"};
  return names[static_cast<size_t>(kind)];
}

namespace {

void add(Timed& to, int64_t nanoseconds) {
  ++to.count;
  to.nanoseconds += nanoseconds;
}

void add(Statistics::Histogram& to, int64_t nanoseconds) {
  const double seconds = static_cast<double>(nanoseconds) * 1e-9;
  const auto bucket = std::lower_bound(Statistics::bounds.begin(), Statistics::bounds.end(), seconds);
  ++to.counts[static_cast<size_t>(bucket - Statistics::bounds.begin())];
  to.sum += seconds;
  ++to.count;
}

}  // namespace

void StatisticsCounter::add_batch(const BatchTimes& times) {
  std::scoped_lock lock(mutex_);
  ++sum_.executions;
  sum_.samples += times.samples;
  Statistics::Batch& batch = sum_.batches[times.samples];
  ++batch.count;
  batch.input_ns += times.input_ns;
  batch.compute_ns += times.compute_ns;
  batch.output_ns += times.output_ns;
}

void StatisticsCounter::add_answer(const BatchTimes& batch, int64_t queue_ns, int64_t total_ns) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::scoped_lock lock(mutex_);
  ++sum_.requests[0];
  add(sum_.success, total_ns);
  add(sum_.queue, queue_ns);
  add(sum_.input, batch.input_ns);
  add(sum_.compute, batch.compute_ns);
  add(sum_.output, batch.output_ns);
  add(sum_.latency, total_ns);
  add(sum_.queueing, queue_ns);
  add(sum_.computing, batch.compute_ns);
  sum_.last_milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void StatisticsCounter::add_failure(FailureKind kind, int64_t total_ns) {
  std::scoped_lock lock(mutex_);
  ++sum_.requests[static_cast<size_t>(kind)];
  add(sum_.fail, total_ns);
}

Statistics StatisticsCounter::read() const {
  std::scoped_lock lock(mutex_);
  return sum_;
}

}  // namespace tutti::serve
