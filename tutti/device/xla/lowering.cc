#include "tutti/device/xla/lowering.h"

#include "tutti/base/error.h"
#include "tutti/device/cpu/cpu.h"
#include "tutti/device/xla/expand.h"
#include "tutti/device/xla/hlo.h"
#include "tutti/transform/passes.h"

namespace tutti::xla {

Lowered lower(const Graph& graph, const CompileSettings& settings, FoldMemo& folded, const std::string& device, std::string_view platform) {
  verify(graph);
  for (const Node& node : graph.nodes())
    if (node.op == Op::parameter && role(node) != Graph::Role::input && node.literal.empty())
      fail<InvalidArgument>(device, "{} '{}' has no value", name(role(node)), node.attributes.text("name"));
  PassOptions options;
  if (settings.report != nullptr) options.report = &settings.report->passes;
  Lowered out{run_passes(expand(graph), inference_passes(cpu::evaluate, folded), options), {}};
  const bool is_host = platform == "cpu";
  if (is_host) {
    const Pass last[] = {{"sink_into_scans", sink_into_scans}, {"remove_dead", remove_dead}};
    options.rounds = 1;
    out.graph = run_passes(out.graph, last, options);
  }
  out.program = to_stablehlo(out.graph, {.precision = settings.precision, .slices_ahead = is_host});
  return out;
}

std::vector<XlaFlag> flags_of(std::string_view platform) {
  // XLA's own minimum and maximum lose NaN on the processor unless asked not to.
  if (platform == "cpu") return {{"xla_cpu_enable_fast_min_max", "False"}};
  // Gradients are in buckets already, in the order in which they are ready: put together again, none could start before the last is there.
  if (platform == "cuda" || platform == "rocm") return {{"xla_gpu_all_reduce_combine_threshold_bytes", "0"}};
  return {};
}

void describe(const Executable& executable, const Graph& graph, ProgramStats& stats, CompileReport* report) {
  const ExecutableStats compiled = executable.stats();
  stats.peak_memory_bytes = compiled.temporary_bytes;
  HloKernels kernels = kernels_of(executable.optimized(), graph.parameters(Graph::Role::input).size());
  stats.kernels = kernels.launches;
  if (report == nullptr) return;
  report->steps = std::move(kernels.steps);
  report->fusions = kernels.fusions;
  report->library_calls = kernels.library_calls;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::parameter && role(node) != Graph::Role::input) report->memory.weights += node.literal.type().bytes();
    if (node.op == Op::constant) report->memory.constants += node.literal.type().bytes();
  }
  report->memory.arena = compiled.temporary_bytes;
  report->memory.device =
      compiled.temporary_bytes + compiled.argument_bytes + compiled.output_bytes - compiled.alias_bytes + compiled.code_bytes;
}

}  // namespace tutti::xla
