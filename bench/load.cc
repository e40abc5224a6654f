// Times opening one model file against reading its bytes: `bench_load FILE ROUNDS` prints one JSON line. Rounds alternate, so that both see
// the same machine; memory is what the process holds more after loading than before.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/base/json.h"
#include "tutti/tutti.h"

namespace {

struct Measure {
  double seconds = 0;
  int64_t held_bytes = 0;  // resident after the work beyond those before
};

int64_t resident_bytes() {
  std::ifstream status("/proc/self/statm");
  int64_t total = 0, resident = 0;
  status >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Runs `work` in a child; what it returns is alive while memory is measured.
template <class F>
Measure in_child(F work) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  pid_t child = fork();
  if (child == 0) {
    int64_t before = resident_bytes();
    auto start = std::chrono::steady_clock::now();
    auto result = work();
    Measure measure{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), resident_bytes() - before};
    _exit(write(ends[1], &measure, sizeof measure) == sizeof measure ? 0 : 1);
  }
  Measure measure;
  if (read(ends[0], &measure, sizeof measure) != sizeof measure) std::abort();
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  return measure;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tutti;
  if (argc != 3) return 2;
  std::string path = argv[1];
  try {
    // What the file computes, to be compared before any time counts.
    Model model = load(path);
    auto predict = compile(model);
    std::vector<float> ones(static_cast<size_t>(predict.input_types()[0].shape.elements()), 1.0f);
    std::vector<float> outputs(static_cast<size_t>(predict.output_types()[0].shape.elements()));
    predict(ones, outputs);
    JsonList values(outputs.begin(), outputs.end());

    std::vector<double> reading, loading, held;
    for (int round = 0; round < std::atoi(argv[2]); ++round) {
      reading.push_back(in_child([&] {
                          auto file = open_file(path);
                          auto bytes = std::make_unique_for_overwrite<std::byte[]>(file->size());
                          file->read(0, {bytes.get(), file->size()});
                          return bytes;
                        }).seconds);
      Measure measure = in_child([&] { return load(path); });
      loading.push_back(measure.seconds);
      held.push_back(static_cast<double>(measure.held_bytes));
    }
    Json out = JsonMembers{
        {"read_ms", median(reading) * 1e3}, {"load_ms", median(loading) * 1e3}, {"held_bytes", median(held)}, {"output", values}};
    std::puts(out.dump().c_str());
  } catch (const Error& e) {
    std::fprintf(stderr, "bench_load: %s\n", e.what());
    return 1;
  }
}
