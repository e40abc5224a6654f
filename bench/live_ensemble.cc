// What a member more or less costs: live_ensemble ENSEMBLE.toml MEMBER.keras [BATCH]
//
// Against loading the ensemble anew and compiling it as one program, and what predictions cost either way.
#include <tutti/tutti.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tutti/base/stopwatch.h"

namespace {

template <class F>
double seconds(F&& work) {
  const tutti::Stopwatch watch;
  work();
  return watch.seconds();
}

double prediction(tutti::CompiledModel& predict) {
  double best = 1e30;
  for (int i = 0; i < 30; ++i) best = std::min(best, seconds([&] { predict.run(); }));
  return best;
}

}  // namespace

int main(int count, char** words) try {
  if (count < 3) return std::fprintf(stderr, "live_ensemble ENSEMBLE.toml MEMBER.keras [BATCH]\n"), 2;
  const tutti::CompileOptions options{.batch = count > 3 ? std::atoi(words[3]) : 1};
  std::optional<tutti::Model> all;
  std::printf("load             %8.1f ms\n", 1e3 * seconds([&] { all = tutti::load(words[1]); }));
  std::optional<tutti::CompiledModel> whole;
  std::printf("compile as one   %8.1f ms\n", 1e3 * seconds([&] { whole = tutti::compile(*all, options); }));
  std::optional<tutti::LiveEnsemble> live;
  std::printf("compile live     %8.1f ms\n", 1e3 * seconds([&] { live.emplace(*all, options); }));
  const tutti::Model member = tutti::load(words[2]);
  for (int i = 0; i < 3; ++i) {
    const std::string name = "new" + std::to_string(i);
    std::printf("add              %8.1f ms, ", 1e3 * seconds([&] { live->add(name, member); }));
    std::printf("first prediction %.1f ms\n", 1e3 * seconds([&] { live->now().run(); }));
  }
  const std::vector<std::string> names = live->members();
  std::printf("drop one within  %8.1f ms\n", 1e3 * seconds([&] { live->drop(names[names.size() / 2]); }));
  std::printf("drop the newest  %8.1f ms\n", 1e3 * seconds([&] { live->drop(names.back()); }));
  std::printf("predict as one   %8.1f us\n", 1e6 * prediction(*whole));
  std::printf("predict live     %8.1f us\n", 1e6 * prediction(live->now()));
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
