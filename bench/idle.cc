// How still a machine is: `idle MICROSECONDS THREADS` has each thread count for so long, again and again for half a second,
// and prints {"p50_us", "p99_us"}. What a p99 is there of a call that does nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "tutti/base/stopwatch.h"
#include "tutti/device/cpu/team.h"

namespace {

constexpr double for_seconds = 0.5;

// Each waits for the one before, and for nothing else.
void add(int64_t times) {
  volatile double sum = 0;
  for (int64_t i = 0; i < times; ++i) sum = sum + 1;
}

}  // namespace

int main(int count, char** words) try {
  if (count != 3) throw std::invalid_argument("idle MICROSECONDS THREADS");
  const double wanted = std::stod(words[1]) * 1e-6;
  const int threads = std::stoi(words[2]);
  constexpr int64_t sample = 1'000'000;
  double each = 1;
  for (int i = 0; i < 5; ++i) {
    const tutti::Stopwatch watch;
    add(sample);
    each = std::min(each, watch.seconds() / sample);
  }
  const auto times = static_cast<int64_t>(wanted / each);
  std::vector<double> took;
  for (const tutti::Stopwatch all; all.seconds() < for_seconds || took.size() < 100;) {
    const tutti::Stopwatch watch;
    tutti::cpu::team(threads, threads, [&](int64_t, int) { add(times); });
    took.push_back(watch.seconds() * 1e6);
  }
  std::sort(took.begin(), took.end());
  std::cout << fmt::format("{{\"p50_us\": {:.4g}, \"p99_us\": {:.4g}}}\n", took[took.size() / 2], took[took.size() * 99 / 100]);
} catch (const std::exception& error) {
  std::cerr << "idle: " << error.what() << "\n";
  return 1;
}
