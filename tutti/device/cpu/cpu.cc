#include "tutti/device/cpu/cpu.h"

#include <mutex>

#include "tutti/device/cpu/candidate.h"
#include "tutti/device/cpu/measure.h"
#include "tutti/device/cpu/team.h"
#include "tutti/device/host.h"
#include "tutti/device/host_program.h"
#include "tutti/transform/passes.h"

namespace tutti {

namespace {

// Folded and packed weights are the same for every batch size.
struct CpuCache : CompileCache {
  std::mutex mutex;
  FoldMemo folded;
  cpu::PackMemo packs;
};

class CpuDevice : public HostDevice {
 public:
  std::string name() const override { return "cpu"; }
  std::string description() const override { return "this machine's processor: fused kernels, one program a model"; }
  std::optional<std::string> refuses(const Graph&, const Node&) const override { return {}; }
  std::unique_ptr<Program> compile(const Graph& graph, CompileSettings& settings) override {
    verify(graph);
    require_plain(settings, name());
    if (!settings.cache) settings.cache = std::make_shared<CpuCache>();
    auto& cache = dynamic_cast<CpuCache&>(*settings.cache);
    std::lock_guard lock(cache.mutex);
    CompileReport* report = settings.report;
    PassOptions options;
    if (report != nullptr) options.report = &report->passes;
    std::vector<Pass> passes = inference_passes(cpu::evaluate, cache.folded);
    Graph simple = run_passes(graph, passes, options);
    if (has_dilated(simple)) {
      passes.insert(passes.begin(), {"split_dilated", split_dilated});
      simple = run_passes(simple, passes, options);
    }
    // What a step of a recurrent layer multiplies with its input stays in the caches, where the products of all steps would not.
    const Pass last[] = {
        {"sink_into_scans", sink_into_scans}, {"move_weights_into_scans", move_weights_into_scans}, {"remove_dead", remove_dead}};
    options.rounds = 1;
    simple = run_passes(simple, last, options);
    const int threads = parts_at_once(settings.threads);
    std::vector<Refusal> refusals;
    std::vector<Step> steps = cpu::select_steps(simple, {threads, report != nullptr ? &refusals : nullptr, &cache.packs});
    if (report != nullptr) {
      describe_steps(simple, steps, *report, refusals);
      report->memory.packed = cache.packs.bytes();
    }
    return std::make_unique<HostProgram>(simple, std::move(steps), "cpu", settings.states);
  }
  std::optional<Speed> measure(int threads) override { return cpu::measure_speed(threads); }
  int parts_at_once(int threads) const override { return threads == 0 ? thread_limit() : threads; }
  void side_by_side(int threads, int64_t pieces, const std::function<void(int64_t piece, int slot)>& body) override {
    cpu::team(threads, pieces, body);
  }
};

}  // namespace

std::vector<Tensor> cpu::evaluate(const Graph& graph) {
  HostProgram program(graph, select_steps(graph), "cpu");
  std::vector<HostBuffer> buffers(program.output_types().begin(), program.output_types().end());
  std::vector<Buffer*> outputs;
  for (auto& buffer : buffers) outputs.push_back(&buffer);
  program.run({}, outputs);
  std::vector<Tensor> out;
  for (auto& buffer : buffers) out.push_back(buffer.tensor());
  return out;
}

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace tutti
