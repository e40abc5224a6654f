#include "tutti/device/reference/reference.h"

#include "tutti/device/host.h"
#include "tutti/device/host_program.h"
#include "tutti/device/reference/kernel.h"

namespace tutti {

namespace {

class ReferenceDevice : public HostDevice {
 public:
  std::string name() const override { return "reference"; }
  std::string description() const override { return "plain loops, accumulating in double: the oracle of the other devices"; }
  std::optional<std::string> refuses(const Graph&, const Node&) const override { return {}; }
  std::unique_ptr<Program> compile(const Graph& graph, CompileSettings&) override {
    verify(graph);
    return std::make_unique<HostProgram>(graph, reference::make_steps(graph), "reference");
  }
};

}  // namespace

std::unique_ptr<Device> make_reference_device() { return std::make_unique<ReferenceDevice>(); }

}  // namespace tutti
