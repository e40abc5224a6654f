#include "tutti/run/trace.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <thread>

#include "tutti/base/file.h"

namespace tutti {

namespace {

constexpr size_t most_spans = 2'000'000, most_kernels = 200'000;  // a replica: a file that a browser still opens

// "reader 50" (microseconds a sample, from one reader for all), "sleep 1 2000" (microseconds a step, on rank 1), "start 1000" (microseconds
// a part, however few its samples), "link 100" (megabytes a second between replicas).
struct InjectedCause {
  std::string name;
  double first = 0, second = 0;

  static const InjectedCause& get() {
    static const InjectedCause cause = [] {
      InjectedCause out;
      const char* text = std::getenv("TUTTI_SCALE_CAUSE");
      if (text == nullptr) return out;
      const std::string all(text);
      const size_t space = all.find(' ');
      out.name = all.substr(0, space);
      char* rest = nullptr;
      if (space != std::string::npos) out.first = std::strtod(all.c_str() + space, &rest);
      if (rest != nullptr) out.second = std::strtod(rest, nullptr);
      return out;
    }();
    return cause;
  }
};

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double microseconds_since(Timeline::Clock::time_point origin, Timeline::Clock::time_point time) {
  return std::chrono::duration<double, std::micro>(time - origin).count();
}

}  // namespace

std::string_view name(Phase phase) {
  constexpr std::string_view names[] = {"input", "compute", "wait", "exchange", "update", "host"};
  return names[static_cast<size_t>(phase)];
}

void Timeline::add(Phase phase, Clock::time_point begin, Clock::time_point end, const std::string* name) {
  std::lock_guard lock(mutex_);
  seconds_[static_cast<size_t>(phase)] += std::chrono::duration<double>(end - begin).count();
  if (keeps_spans_ && spans_.size() < (lane_ == Lane::kernels ? most_kernels : most_spans)) spans_.push_back({phase, begin, end, name});
}

double Timeline::seconds(Phase phase) const {
  std::lock_guard lock(mutex_);
  return seconds_[static_cast<size_t>(phase)];
}

void Timeline::clear() {
  std::lock_guard lock(mutex_);
  seconds_ = {};
  spans_.clear();
}

void Timeline::slow_down_input(size_t samples, size_t small_batches) const {
  const auto& cause = InjectedCause::get();
  if (cause.name == "reader") sleep_for(cause.first * 1e-6 * static_cast<double>(samples) / static_cast<double>(small_batches));
}

void Timeline::slow_down_compute() const {
  const auto& cause = InjectedCause::get();
  if (cause.name == "sleep" && static_cast<int>(cause.first) == rank_) sleep_for(cause.second * 1e-6);
  if (cause.name == "start") sleep_for(cause.first * 1e-6);
}

void Timeline::slow_down_exchange(double bytes) const {
  const auto& cause = InjectedCause::get();
  if (cause.name == "link" && bytes > 0) sleep_for(bytes / (cause.first * 1e6));
}

void Timeline::append(Json& events, Clock::time_point origin) const {
  std::lock_guard lock(mutex_);
  constexpr const char* lanes[] = {"", ": exchange", ": kernels"};
  constexpr int64_t most_replicas = 1000;  // lanes of one kind stand together
  const int64_t thread = rank_ + most_replicas * static_cast<int64_t>(lane_);
  events.push(JsonMembers{{"ph", "M"},
                          {"name", "thread_name"},
                          {"pid", int64_t{0}},
                          {"tid", thread},
                          {"args", JsonMembers{{"name", "replica " + std::to_string(rank_) + lanes[static_cast<size_t>(lane_)]}}}});
  for (const Kept& span : spans_)
    events.push(JsonMembers{{"ph", "X"},
                            {"name", span.name != nullptr ? *span.name : std::string(name(span.phase))},
                            {"pid", int64_t{0}},
                            {"tid", thread},
                            {"ts", microseconds_since(origin, span.begin)},
                            {"dur", microseconds_since(span.begin, span.end)}});
}

std::string trace_path(const std::string& path, const std::string& job, int rank) {
  const std::filesystem::path whole(path);
  std::string stem = whole.stem().string();
  if (!job.empty()) stem += "." + job;
  if (rank > 0) stem += ".rank" + std::to_string(rank);
  return (whole.parent_path() / (stem + whole.extension().string())).string();
}

void write_trace(const std::string& path, const std::vector<const Timeline*>& timelines, const std::string& job) {
  Json events = Json::list();
  events.push(
      JsonMembers{{"ph", "M"}, {"name", "process_name"}, {"pid", int64_t{0}}, {"args", JsonMembers{{"name", "tutti fit: " + job}}}});
  const auto origin = Timeline::Clock::time_point{};
  for (const Timeline* timeline : timelines) timeline->append(events, origin);
  OutputFile file(path);
  file.write(Json(JsonMembers{{"traceEvents", events}, {"displayTimeUnit", "ms"}}).dump() + "\n");
  file.commit();
}

}  // namespace tutti
