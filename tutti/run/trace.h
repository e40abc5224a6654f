// Where the time of a training step goes, on each replica: sums by phase, and if asked for every span, as a file that Perfetto and
// chrome://tracing open.
#pragma once

#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "tutti/base/json.h"

namespace tutti {

enum class Phase { input, compute, wait, exchange, update, host, count };
std::string_view name(Phase phase);

// The spans of one replica by one thread, which never overlap but for loops of kernels and what is in them. Another thread may read and
// clear them meanwhile: a replica still writes down how long it waited for the others when these go on.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Lane { replica, exchange, kernels };  // of a replica: what it does, what goes on meanwhile, and what it does in detail
  explicit Timeline(int rank = 0, bool keeps_spans = false, Lane lane = Lane::replica)
      : rank_(rank), keeps_spans_(keeps_spans), lane_(lane) {}

  class Span {
   public:
    Span(Timeline& timeline, Phase phase) : timeline_(timeline), phase_(phase) {}
    ~Span() { timeline_.add(phase_, begin_, Clock::now()); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Timeline& timeline_;
    Phase phase_;
    Clock::time_point begin_ = Clock::now();
  };
  // `name` instead of the phase's, which stays where it is.
  void add(Phase phase, Clock::time_point begin, Clock::time_point end, const std::string* name = nullptr);

  int rank() const { return rank_; }
  bool keeps_spans() const { return keeps_spans_; }
  double seconds(Phase phase) const;
  void clear();  // sums and spans

  // For tests of who is blamed: makes a cause out of thin air, as TUTTI_SCALE_CAUSE says.
  void slow_down_input(size_t samples, size_t small_batches) const;
  void slow_down_compute() const;
  void slow_down_exchange(double bytes) const;

  // Events in the format of Chrome's trace viewer; times from `origin`.
  void append(Json& events, Clock::time_point origin) const;

 private:
  struct Kept {
    Phase phase;
    Clock::time_point begin, end;
    const std::string* name;
  };
  int rank_;
  bool keeps_spans_;
  Lane lane_;
  mutable std::mutex mutex_;
  std::array<double, static_cast<size_t>(Phase::count)> seconds_{};
  std::vector<Kept> spans_;
};

// run.json of one job among several: run.NAME.json; of a rank: run.rank1.json, the first one's without.
std::string trace_path(const std::string& path, const std::string& job, int rank);

// Writes the spans of all replicas; appears whole or not at all.
void write_trace(const std::string& path, const std::vector<const Timeline*>& timelines, const std::string& job);

}  // namespace tutti
