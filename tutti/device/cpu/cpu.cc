#include "tutti/device/cpu/cpu.h"

#include "tutti/device/cpu/candidate.h"
#include "tutti/device/host.h"
#include "tutti/device/host_program.h"

namespace tutti {

namespace {

class CpuDevice : public HostDevice {
 public:
  std::string name() const override { return "cpu"; }
  std::string description() const override { return "this machine's processor: fused kernels, one program a model"; }
  std::optional<std::string> refuses(const Graph&, const Node&) const override { return {}; }
  std::unique_ptr<Program> compile(const Graph& graph) override {
    verify(graph);
    return std::make_unique<HostProgram>(graph, cpu::select_steps(graph, 1), "cpu");
  }
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace tutti
