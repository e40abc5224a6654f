// What a served version of a model has done so far: counts, times and histograms, as /metrics, V2 statistics and the page show them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>

#include "tutti/serve/failure.h"

namespace tutti::serve {

struct Timed {
  int64_t count = 0, nanoseconds = 0;
};

struct Statistics {
  // Upper bounds in seconds of the histogram's buckets; what is beyond the last is in one more.
  static constexpr std::array<double, 21> bounds = {10e-6, 20e-6,  50e-6,  100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3,
                                                    50e-3, 100e-3, 200e-3, 500e-3, 1.0,    2.0,    5.0,  10.0, 30.0, 60.0};
  struct Histogram {
    std::array<int64_t, bounds.size() + 1> counts = {};  // of each bucket alone
    double sum = 0;                                      // seconds
    int64_t count = 0;
  };
  struct Batch {
    int64_t count = 0;                                    // batches of this size
    int64_t input_ns = 0, compute_ns = 0, output_ns = 0;  // of all of them
  };

  std::array<int64_t, failure_kinds> requests = {};  // ended, by FailureKind; none: answered
  int64_t samples = 0;                               // computed
  int64_t executions = 0;                            // runs of a program
  Timed success, fail;                               // from submit() to done(), by request
  Timed queue, input, compute, output;               // by answered request: waiting, gathering the batch, the program, handing out rows
  std::map<int64_t, Batch> batches;                  // by samples, padding not counted
  Histogram latency, queueing, computing;  // of answered requests, from submit() to done(), and of that in the queue, in the program
  int64_t last_milliseconds = 0;           // of the clock, when the last request was answered
};

// Counts from any thread.
class StatisticsCounter {
 public:
  struct BatchTimes {
    int64_t samples = 0, input_ns = 0, compute_ns = 0, output_ns = 0;
  };
  // A batch that was computed, before its requests are counted.
  void add_batch(const BatchTimes& times);
  void add_answer(const BatchTimes& batch, int64_t queue_ns, int64_t total_ns);
  void add_failure(FailureKind kind, int64_t total_ns);
  Statistics read() const;

 private:
  mutable std::mutex mutex_;
  Statistics sum_;
};

}  // namespace tutti::serve
