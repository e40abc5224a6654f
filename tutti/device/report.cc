#include "tutti/device/report.h"

#include <algorithm>
#include <map>
#include <set>

#include "tutti/device/plan.h"
#include "tutti/device/sequence.h"
#include "tutti/graph/cost.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

class Describer {
 public:
  Describer(CompileReport& report, std::span<const Refusal> refusals) : report_(report), refusals_(refusals) {}

  void describe(const Graph& graph, std::span<const Step> steps, int depth, int64_t runs) {
    count_leaves(graph);
    for (const Step& step : steps) {
      const size_t place = report_.steps.size();
      report_.steps.push_back(describe(graph, step, depth, runs));
      if (step.kernel.bodies.empty()) continue;
      // It moves what its bodies do.
      report_.steps[place].weight_bytes = report_.steps[place].value_bytes = 0;
      for (const KernelBody& body : step.kernel.bodies) {
        const size_t first = report_.steps.size();
        const std::vector<std::string> layers = report_.steps[place].layers;
        describe(*body.graph, body.steps->steps(), depth + 1, saturating_multiply(runs, body.runs));
        StepReport& whole = report_.steps[place];
        for (size_t i = first; i < report_.steps.size(); ++i) {
          const StepReport& inner = report_.steps[i];
          if (report_.steps[i].layers.empty()) report_.steps[i].layers = layers;
          if (inner.depth != depth + 1) continue;
          whole.weight_bytes = saturating_add(whole.weight_bytes, saturating_multiply(body.runs, inner.weight_bytes));
          whole.value_bytes = saturating_add(whole.value_bytes, saturating_multiply(body.runs, inner.value_bytes));
        }
      }
    }
  }

 private:
  static const Node& node(const Graph& graph, int32_t index) { return graph.nodes()[static_cast<size_t>(index)]; }

  StepReport describe(const Graph& graph, const Step& step, int depth, int64_t runs) const {
    StepReport out{.kernel = step.name, .ops = {}, .result = step.results.empty() ? Type{} : graph.type(step.results[0])};
    out.depth = depth, out.runs = runs, out.threads = step.threads, out.fallback = step.fallback;
    for (int32_t index : step.nodes) {
      const Node& part = node(graph, index);
      out.ops.emplace_back(name(part.op));
      if (part.origin >= 0 && graph.origins()) {
        const std::string& layer = (*graph.origins())[static_cast<size_t>(part.origin)];
        if (std::find(out.layers.begin(), out.layers.end(), layer) == out.layers.end()) out.layers.push_back(layer);
      }
      out.flops = saturating_add(out.flops, cost(graph, part).flops);
      for (const Refusal& refusal : refusals_)
        if (refusal.graph == &graph && refusal.node == index)
          out.refused.push_back({std::string(refusal.candidate), out.ops.back(), refusal.reason});
    }
    if (const Node& last = node(graph, step.nodes.back()); last.body && step.nodes.size() == 1)
      out.value_bytes = cost(graph, last).bytes;
    else
      count_bytes(graph, step, out);
    return out;
  }

  // What the step's nodes read and do not make, every byte once. Broadcasts and slices that have no memory are looked through.
  static void count_bytes(const Graph& graph, const Step& step, StepReport& out) {
    const std::set<int32_t> inside(step.nodes.begin(), step.nodes.end());
    const std::set<ValueId> in_memory(step.operands.begin(), step.operands.end());
    std::map<ValueId, int64_t> read;
    for (int32_t index : step.nodes) {
      const Node& part = node(graph, index);
      for (size_t i = 0; i < part.operands.size(); ++i) {
        ValueId id = part.operands[i];
        int64_t bytes = bytes_read(graph, part, i);
        auto is_inside = [&] { return inside.contains(graph.producer(id)); };
        while (!is_inside() && !in_memory.contains(id)) {
          const Node& source = node(graph, graph.producer(id));
          if (!is_looked_through(source) && !is_view(graph, source)) break;
          id = source.operands[0];
          bytes = std::min(bytes, graph.type(id).bytes());
        }
        if (!is_inside()) read[id] = std::min(graph.type(id).bytes(), saturating_add(read[id], bytes));
      }
    }
    for (auto [id, bytes] : read) {
      int64_t& sum = is_constant_leaf(node(graph, graph.producer(id))) ? out.weight_bytes : out.value_bytes;
      sum = saturating_add(sum, bytes);
    }
    for (ValueId id : step.results) out.value_bytes = saturating_add(out.value_bytes, graph.type(id).bytes());
  }

  void count_leaves(const Graph& graph) {
    for (const Node& leaf : graph.nodes()) {
      if (leaf.literal.empty() || !leaves_.insert(leaf.literal.bytes().data()).second) continue;
      int64_t& sum = leaf.op == Op::parameter ? report_.memory.weights : report_.memory.constants;
      sum = saturating_add(sum, leaf.literal.type().bytes());
    }
  }

  CompileReport& report_;
  std::span<const Refusal> refusals_;
  std::set<const std::byte*> leaves_;  // counted already: graphs share bytes
};

}  // namespace

void describe_steps(const Graph& graph, std::span<const Step> steps, CompileReport& report, std::span<const Refusal> refusals) {
  Describer(report, refusals).describe(graph, steps, 0, 1);
  report.memory.arena = plan_memory(graph, steps).arena_bytes;
  for (const Step& step : steps) {
    for (ValueId id : step.results) report.memory.without_reuse += Plan::aligned(graph.type(id).bytes());
    report.memory.without_reuse += Plan::aligned(step.kernel.workspace);
  }
}

}  // namespace tutti
