#include "tutti/device/null/null.h"

#include <cstring>

#include "tutti/device/host.h"
#include "tutti/device/plan.h"
#include "tutti/device/report.h"

namespace tutti {

namespace {

class NullProgram : public Program {
 public:
  NullProgram(const Graph& graph, std::span<const Step> steps) : Program(graph) {
    stats_.kernels = total_launches(steps);
    stats_.peak_memory_bytes = plan_memory(graph, steps).arena_bytes;
  }
  bool computes() const override { return false; }
  std::unique_ptr<Program> context(StateBuffers*) const override { return std::make_unique<NullProgram>(*this); }

  void run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    check_arguments(inputs, outputs);
    for (Buffer* output : outputs) std::memset(output->host().data(), 0, output->host().size());
  }
};

class NullDevice : public HostDevice {
 public:
  std::string name() const override { return "null"; }
  std::string description() const override { return "plans and counts, computes nothing"; }
  std::optional<std::string> refuses(const Graph&, const Node&) const override { return {}; }
  std::unique_ptr<Program> compile(const Graph& graph, CompileSettings& settings) override {
    verify(graph);
    auto steps = one_step_a_node(graph);
    if (settings.report != nullptr) describe_steps(graph, steps, *settings.report);
    return std::make_unique<NullProgram>(graph, steps);
  }
};

}  // namespace

std::unique_ptr<Device> make_null_device() { return std::make_unique<NullDevice>(); }

}  // namespace tutti
