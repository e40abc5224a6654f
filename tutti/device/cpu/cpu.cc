#include "tutti/device/cpu/cpu.h"

#include <mutex>

#include "tutti/device/cpu/candidate.h"
#include "tutti/device/host.h"
#include "tutti/device/host_program.h"
#include "tutti/device/reference/kernel.h"
#include "tutti/transform/passes.h"

namespace tutti {

namespace {

// Folded weights are the same for every batch size.
struct CpuCache : CompileCache {
  std::mutex mutex;
  FoldMemo folded;
};

std::vector<Tensor> evaluate(const Graph& graph) {
  HostProgram program(graph, reference::make_steps(graph), "reference");
  std::vector<HostBuffer> buffers(program.output_types().begin(), program.output_types().end());
  std::vector<Buffer*> outputs;
  for (auto& buffer : buffers) outputs.push_back(&buffer);
  program.run({}, outputs);
  std::vector<Tensor> out;
  for (auto& buffer : buffers) out.push_back(buffer.tensor());
  return out;
}

class CpuDevice : public HostDevice {
 public:
  std::string name() const override { return "cpu"; }
  std::string description() const override { return "this machine's processor: fused kernels, one program a model"; }
  std::optional<std::string> refuses(const Graph&, const Node&) const override { return {}; }
  std::unique_ptr<Program> compile(const Graph& graph, std::shared_ptr<CompileCache>& cache) override {
    verify(graph);
    if (!cache) cache = std::make_shared<CpuCache>();
    auto& memo = dynamic_cast<CpuCache&>(*cache);
    std::lock_guard lock(memo.mutex);
    Graph simple = run_passes(graph, inference_passes(evaluate, memo.folded));
    return std::make_unique<HostProgram>(simple, cpu::select_steps(simple, 1), "cpu");
  }
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace tutti
