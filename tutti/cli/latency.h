// Times of repeated runs: quantiles and a histogram, for people and for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/json.h"

namespace tutti::cli {

// Since the process was started, the loading of its libraries included.
double seconds_since_start();

class Latency {
 public:
  explicit Latency(std::vector<double> seconds);  // one a run, at least one

  double quantile(double q) const;  // seconds
  double total() const;

  // Runs that took from `from` up to `to` seconds, the next one's `from`.
  struct Bucket {
    double from, to;
    int64_t count;
  };
  // Of equal ratio up to the 99th percentile, at most 12; the last holds whatever took longer.
  std::vector<Bucket> histogram() const;

  // p50_us, p90_us, p99_us, max_us, histogram: [{"from_us", "to_us", "count"}, ...].
  void add_to(Json& object) const;
  // Quantiles, then a line a bucket with a bar; in at most 80 columns.
  std::string text() const;

 private:
  std::vector<double> sorted_;
};

}  // namespace tutti::cli
