// serve_client FILE SOCKET NAME SECONDS: the same sample again and again, in turns computed here and by the server at SOCKET, which serves
// FILE under NAME. Prints one line of JSON: medians in microseconds.
#include <tutti/tutti.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

template <class F>
void time_into(std::vector<double>& out, double seconds, F&& f) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    const auto begin = Clock::now();
    f();
    out.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
}

double quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int count, char** words) try {
  if (count != 5) return 2;
  auto here = tutti::compile(tutti::load(words[1]));
  auto there = tutti::connect(words[2]).model(words[3]);
  std::vector<float> input(static_cast<size_t>(here.input_types()[0].shape.elements())),
      output(static_cast<size_t>(here.output_types()[0].shape.elements())), answer(output.size());
  for (size_t i = 0; i < input.size(); ++i) input[i] = std::sin(static_cast<float>(i));
  here(input, output);
  there(input, answer);
  if (output != answer) tutti::fail<tutti::InternalError>("bench", "the server's answer differs");
  std::vector<double> bare, remote;
  constexpr int turns = 20;
  for (int turn = 0; turn < turns; ++turn) {
    time_into(bare, std::stod(words[4]) / turns / 4, [&] { here(input, output); });
    time_into(remote, std::stod(words[4]) / turns, [&] { there(input, answer); });
  }
  std::printf("{\"bare_us\": %g, \"remote_us\": %g, \"remote_p90_us\": %g}\n", quantile(bare, 0.5), quantile(remote, 0.5),
              quantile(remote, 0.9));
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
