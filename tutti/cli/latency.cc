#include "tutti/cli/latency.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "tutti/cli/console.h"

namespace tutti::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_buckets = 12, columns = 80;

// Taken before main(). The system tells when a process began to a hundredth of a second only, but what it has computed since to the
// nanosecond, and loading libraries is little else.
const Clock::time_point process_start = [] {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return Clock::now() - std::chrono::seconds(used.tv_sec) - std::chrono::nanoseconds(used.tv_nsec);
}();

std::string bar(double part, size_t width) {
  const double cells = part * static_cast<double>(width);
  if (!has_utf8()) return std::string(part > 0 ? std::max<size_t>(1, static_cast<size_t>(std::lround(cells))) : 0, '#');
  constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  auto full = static_cast<size_t>(cells);
  auto rest = static_cast<size_t>((cells - static_cast<double>(full)) * 8);
  if (full == 0 && rest == 0 && part > 0) rest = 1;
  std::string out;
  for (size_t i = 0; i < full; ++i) out += "█";
  return out + eighths[rest];
}

}  // namespace

double seconds_since_start() { return std::chrono::duration<double>(Clock::now() - process_start).count(); }

Latency::Latency(std::vector<double> seconds) : sorted_(std::move(seconds)) { std::sort(sorted_.begin(), sorted_.end()); }

double Latency::quantile(double q) const { return sorted_[static_cast<size_t>(std::ceil(q * static_cast<double>(sorted_.size()))) - 1]; }

double Latency::total() const { return std::accumulate(sorted_.begin(), sorted_.end(), 0.0); }

std::vector<Latency::Bucket> Latency::histogram() const {
  constexpr double least_ratio = 1.02;            // finer than that is noise
  const double low = std::max(sorted_[0], 1e-9);  // a clock may not see a very short run
  const double range = std::max(1.0, quantile(0.99) / low);
  const double ratio = std::max(least_ratio, std::pow(range, 1.0 / (most_buckets - 1)) * (1 + 1e-9));
  std::vector<Bucket> out;
  auto run = sorted_.begin();
  for (double from = low; run != sorted_.end() && out.size() + 1 < most_buckets; from *= ratio) {
    auto end = std::lower_bound(run, sorted_.end(), from * ratio);
    out.push_back({out.empty() ? sorted_[0] : from, from * ratio, end - run});
    run = end;
    if (from * ratio > quantile(0.99)) break;
  }
  if (run != sorted_.end()) out.push_back({out.back().to, sorted_.back(), sorted_.end() - run});
  return out;
}

void Latency::add_to(Json& object) const {
  object.set("p50_us", quantile(0.5) * 1e6);
  object.set("p90_us", quantile(0.9) * 1e6);
  object.set("p99_us", quantile(0.99) * 1e6);
  object.set("max_us", sorted_.back() * 1e6);
  Json list = Json::list();
  for (const Bucket& bucket : histogram())
    list.push(JsonMembers{{"from_us", bucket.from * 1e6}, {"to_us", bucket.to * 1e6}, {"count", bucket.count}});
  object.set("histogram", list);
}

std::string Latency::text() const {
  auto us = [](double seconds) { return three_digits(seconds * 1e6); };
  std::string out = fmt::format("p50 {} us   p90 {} us   p99 {} us   max {} us\n", us(quantile(0.5)), us(quantile(0.9)), us(quantile(0.99)),
                                us(sorted_.back()));
  const auto buckets = histogram();
  int64_t most = 0;
  for (const Bucket& bucket : buckets) most = std::max(most, bucket.count);
  for (const Bucket& bucket : buckets) {
    std::string label = fmt::format("{:>9} - {:>9} us {:>9}  ", us(bucket.from), us(bucket.to), bucket.count);
    const size_t width = columns - std::min(columns - 8, label.size());
    out += label + bar(static_cast<double>(bucket.count) / static_cast<double>(most), width);
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

}  // namespace tutti::cli
