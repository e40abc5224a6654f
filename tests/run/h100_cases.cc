// h100_cases GROUP [--record]: every program of a group compiles for an H100 and takes no more kernels than recorded. One more is a fusion
// that was lost. With --record what is found is written down instead.
#include <cstdio>
#include <string>

#include "tests/run/h100_programs.h"
#include "tutti/base/error.h"
#include "tutti/device/device.h"

namespace tutti {
namespace {

constexpr int skipped = 77;  // to ctest

int run(const std::string& group, bool records) {
  try {
    open_device("cuda@h100");
  } catch (const DeviceError& e) {
    std::printf("skipped: %s\n", e.what());
    return skipped;
  }
  const auto recorded = recorded_h100_kernels(group);
  std::map<std::string, int64_t> found;
  int wrong = 0;
  for (const std::string& program : h100_programs(group)) {
    std::optional<int64_t> kernels;
    std::string problem;
    try {
      kernels = h100_kernels(group, program);
    } catch (const Unsupported& e) {
      problem = e.what();  // by design, unless it is recorded
    } catch (const Error& e) {
      std::printf("%s: %s\n", program.c_str(), e.what());
      ++wrong;
      continue;
    }
    if (kernels) found[program] = *kernels;
    if (records) continue;
    const auto bound = recorded.find(program);
    if (bound == recorded.end() ? !kernels : kernels && *kernels <= bound->second) continue;
    const std::string takes = kernels ? "takes " + std::to_string(*kernels) + " kernels" : "is refused: " + problem;
    const std::string was = bound == recorded.end() ? "nothing is recorded" : "recorded are " + std::to_string(bound->second);
    std::printf("%s %s; %s\n", program.c_str(), takes.c_str(), was.c_str());
    ++wrong;
  }
  if (records) record_h100_kernels(group, found);
  std::printf("%s: %zu programs, %d wrong\n", group.c_str(), found.size(), wrong);
  return wrong > 0 || found.empty() ? 1 : 0;
}

}  // namespace
}  // namespace tutti

int main(int count, char** words) {
  const bool records = count == 3 && std::string(words[2]) == "--record";
  if (count == 2 || records) return tutti::run(words[1], records);
  std::printf("h100_cases GROUP [--record], where GROUP is one of");
  for (const std::string& group : tutti::h100_groups()) std::printf(" %s", group.c_str());
  std::printf("\n");
  return 2;
}
