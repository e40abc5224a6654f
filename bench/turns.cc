// Ours as bench/peers/engines.py has the others: `turns FOLDER DEVICE`, a process that stays and takes turns. Of FOLDER it reads
// model.keras and x.npy, one batch; prints {}. Then, for each line of standard input, a number of seconds, it predicts over and over for
// that long.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iostream>

#include "tutti/base/stopwatch.h"
#include "tutti/data/npy.h"
#include "tutti/tutti.h"

namespace {

constexpr double warm_up = 0.2;  // part of the time
constexpr size_t fewest = 5;     // runs

// Microseconds of each run.
template <class F>
std::vector<double> repeat(F&& run, double seconds) {
  std::vector<double> out;
  for (const tutti::Stopwatch all; all.seconds() < seconds || out.size() < fewest;) {
    const tutti::Stopwatch watch;
    run();
    out.push_back(watch.seconds() * 1e6);
  }
  return out;
}

}  // namespace

int main(int count, char** words) try {
  if (count != 3) throw std::invalid_argument("turns FOLDER DEVICE");
  const std::string folder = words[1];
  const tutti::Tensor x = tutti::read_npy(folder + "/x.npy");
  auto predict = tutti::compile(tutti::load(folder + "/model.keras"), {.batch = x.shape()[0], .device = words[2]});
  tutti::Tensor y(predict.output_types()[0]);
  const auto run = [&] { predict(x.as<float>(), y.as<float>()); };
  run();
  std::cout << "{}" << std::endl;
  for (double seconds = 0; std::cin >> seconds;) {
    repeat(run, warm_up * seconds);
    const std::clock_t before = std::clock();
    std::vector<double> times = repeat(run, seconds);
    const double computed = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC * 1e6 / static_cast<double>(times.size());
    std::sort(times.begin(), times.end());
    std::cout << fmt::format(R"({{"p50_us": {}, "p99_us": {}, "cpu_us": {}, "runs": {}}})", times[times.size() / 2],
                             times[times.size() * 99 / 100], computed, times.size())
              << std::endl;
  }
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
