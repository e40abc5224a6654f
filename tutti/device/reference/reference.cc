#include "tutti/device/reference/reference.h"

#include "tutti/device/cpu/measure.h"
#include "tutti/device/host.h"
#include "tutti/device/host_program.h"
#include "tutti/device/reference/kernel.h"
#include "tutti/device/report.h"

namespace tutti {

namespace {

class ReferenceDevice : public HostDevice {
 public:
  std::string name() const override { return "reference"; }
  std::string description() const override { return "plain loops, accumulating in double: the oracle of the other devices"; }
  std::optional<std::string> refuses(const Graph&, const Node&) const override { return {}; }
  std::unique_ptr<Program> compile(const Graph& graph, CompileSettings& settings) override {
    verify(graph);
    require_plain(settings, name());
    std::vector<Step> steps = reference::make_steps(graph);
    if (settings.report != nullptr) describe_steps(graph, steps, *settings.report);
    return std::make_unique<HostProgram>(graph, std::move(steps), "reference", settings.states);
  }
  std::optional<Speed> measure(int threads) override { return cpu::measure_speed(threads); }
};

}  // namespace

std::unique_ptr<Device> make_reference_device() { return std::make_unique<ReferenceDevice>(); }

}  // namespace tutti
