// op_cases: checks, times and lists every op on every device present. A case's printed name can be pasted back as a filter.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "tests/ops/op_case.h"
#include "tutti/base/error.h"

namespace tutti {

namespace {

struct Options {
  std::string mode, filter, data = TUTTI_TEST_DATA "/ops_cases";
};

std::vector<std::shared_ptr<Device>> computing_devices() {
  std::vector<std::shared_ptr<Device>> out;
  for (const auto& listing : list_devices())
    if (listing.usable && listing.kind != "none") out.push_back(open_device(listing.name));
  return out;
}

std::optional<std::string> refusal(const Device& device, const Graph& graph) {
  for (const auto& node : graph.nodes())
    if (auto why = device.refuses(graph, node)) return why;
  return {};
}

int check(const std::vector<std::string>& cases, const Options& options) {
  CaseFile file(options.data);
  int failures = 0, passed = 0, refused = 0;
  for (const auto& device : computing_devices())
    for (const auto& name : cases) {
      Graph graph = case_graph(name);
      if (refusal(*device, graph)) {
        ++refused;
        continue;
      }
      CaseData data = file.load(name, graph);
      std::string problem;
      try {
        auto results = run_on(*device, graph, data.operands);
        for (size_t i = 0; i < results.size() && problem.empty(); ++i)
          problem = difference(results[i], data.results[i], data.relative, data.absolute);
      } catch (const Error& e) {
        problem = e.what();
      }
      if (!problem.empty()) std::printf("FAILED %s: %s\n  %s\n", device->name().c_str(), problem.c_str(), name.c_str());
      ++(problem.empty() ? passed : failures);
    }
  std::printf("%d cases agree, %d differ, %d are refused by their device\n", passed, failures, refused);
  return failures == 0 && passed > 0 ? 0 : 1;
}

// Any numbers do for a time; indices of 0 are always in range.
Tensor some_values(const Type& type) {
  Tensor out(type);
  dispatch(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    auto to = out.as<T>();
    for (size_t i = 0; i < to.size(); ++i) to[i] = is_float(type.dtype) ? convert_element<T>(static_cast<double>(i % 17) / 8 - 1) : T{};
  });
  return out;
}

double median_microseconds(Device& device, Program& program, const Graph& graph) {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> from, to;
  for (const auto& type : program.input_types()) {
    buffers.push_back(device.allocate(type));
    const Tensor values = some_values(type);
    device.to_device(values.bytes(), *buffers.back());
    from.push_back(buffers.back().get());
  }
  for (const auto& output : graph.outputs()) {
    buffers.push_back(device.allocate(graph.type(output.value)));
    to.push_back(buffers.back().get());
  }
  std::vector<double> times;
  for (int i = 0; i < 25; ++i) {
    auto start = std::chrono::steady_clock::now();
    program.run(from, to);
    device.synchronize();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + 12, times.end());
  return times[12];
}

int time(const std::vector<std::string>& cases) {
  for (const auto& device : computing_devices())
    for (const auto& name : cases) {
      Graph graph = case_graph(name);
      if (refusal(*device, graph)) continue;
      auto program = device->compile(graph);
      double us = median_microseconds(*device, *program, graph);
      std::printf("%-10s %10.2f us %8.2f GFLOP/s %8.2f GB/s  %s\n", device->name().c_str(), us,
                  static_cast<double>(program->stats().flops) / us / 1e3, static_cast<double>(program->stats().bytes) / us / 1e3,
                  name.c_str());
    }
  return 0;
}

// One line an op and device: the dtypes of the first operand (of the result, for leaves) that run, and those refused with the reason.
int support(const std::vector<std::string>& cases) {
  for (const auto& row : op_table())
    for (const auto& device : computing_devices()) {
      std::map<DType, std::string> dtypes;  // "" or why not
      for (const auto& name : cases) {
        if (op_name(name) != row.name) continue;
        Graph graph = case_graph(name);
        dtypes.try_emplace(graph.type(0).dtype, refusal(*device, graph).value_or(""));
      }
      std::string line;
      for (const auto& [dtype, why] : dtypes) line += fmt::format(" {}{}", tutti::name(dtype), why.empty() ? "" : " (" + why + ")");
      if (!line.empty()) std::printf("%-24s %-10s%s\n", std::string(row.name).c_str(), device->name().c_str(), line.c_str());
    }
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "op_cases --check [FILTER]    compares every device with NumPy and JAX\n"
               "op_cases --time [FILTER]     times every device\n"
               "op_cases --support [FILTER]  which device runs which op and dtype\n"
               "op_cases --list [FILTER]\n"
               "FILTER is any part of a case's name. --data FOLDER: where make_cases.py wrote.\n");
  return 2;
}

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--data" && i + 1 < argc) {
      options.data = argv[++i];
    } else if (options.mode.empty()) {
      options.mode = argument;
    } else if (options.filter.empty()) {
      options.filter = argument;
    } else {
      return usage();
    }
  }
  std::vector<std::string> cases;
  for (auto& name : read_op_cases(default_op_cases()))
    if (name.find(options.filter) != std::string::npos) cases.push_back(std::move(name));
  if (cases.empty()) fail<InvalidArgument>("op cases", "no case contains '{}'", options.filter);
  if (options.mode == "--check") return check(cases, options);
  if (options.mode == "--time") return time(cases);
  if (options.mode == "--support") return support(cases);
  if (options.mode != "--list") return usage();
  for (const auto& name : cases) std::printf("%s\n", name.c_str());
  return 0;
}

}  // namespace

}  // namespace tutti

int main(int argc, char** argv) {
  try {
    return tutti::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "op_cases: error: %s\n", e.what());
    return 1;
  }
}
