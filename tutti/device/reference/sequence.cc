#include "tutti/device/reference/sequence.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::reference {

Sequence::Sequence(const Graph& graph) : pointers_(graph.value_count()) {
  std::vector<int64_t> workspace;
  size_t most_operands = 0, most_results = 0;
  std::vector<size_t> node_of_step;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    workspace.push_back(0);
    const KernelRow* row = find_kernel(node.op);
    if (row == nullptr || is_view(graph, node)) continue;
    Step step{row->make(graph, node), node.operands, node.results, 0};
    workspace.back() = step.kernel.workspace;
    steps_.push_back(std::move(step));
    node_of_step.push_back(n);
    most_operands = std::max(most_operands, node.operands.size());
    most_results = std::max(most_results, node.results.size());
  }
  plan_ = plan_memory(graph, workspace);
  for (size_t s = 0; s < steps_.size(); ++s) {
    steps_[s].workspace = plan_.workspace[node_of_step[s]];
    for (ValueId& id : steps_[s].operands) id = root(id);
  }
  for (const auto& node : graph.nodes()) {
    if (node.op == Op::constant) {
      literals_.push_back(node.literal);
      bind(node.results[0], literals_.back().bytes().data());
      continue;
    }
    for (ValueId id : node.results)
      if (int64_t offset = plan_.offset[static_cast<size_t>(id)]; offset != Plan::outside && root(id) == id)
        planned_.emplace_back(id, offset);
  }
  operands_.resize(most_operands);
  results_.resize(most_results);
}

void Sequence::place(std::byte* arena) {
  arena_ = arena;
  for (auto [id, offset] : planned_) pointers_[static_cast<size_t>(id)] = arena + offset;
}

// Kernels read operands through pointers to const; only results, which are never bound, are written.
void Sequence::bind(ValueId parameter, const std::byte* data) { pointers_[static_cast<size_t>(parameter)] = const_cast<std::byte*>(data); }

void Sequence::run() {
  for (auto& step : steps_) {
    for (size_t i = 0; i < step.operands.size(); ++i) operands_[i] = pointers_[static_cast<size_t>(step.operands[i])];
    for (size_t i = 0; i < step.results.size(); ++i) results_[i] = pointers_[static_cast<size_t>(step.results[i])];
    step.kernel.run({operands_.data(), results_.data(), arena_ + step.workspace});
  }
}

}  // namespace tutti::reference
