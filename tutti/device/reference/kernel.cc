#include "tutti/device/reference/kernel.h"

#include <algorithm>
#include <array>

namespace tutti::reference {

namespace {

using Table = std::array<const KernelRow*, 256>;

Table make_table() {
  Table table{};
  for (auto rows : {elementwise_kernels(), binary_kernels(), movement_kernels(), gather_scatter_kernels(), reduction_kernels(),
                    select_and_scatter_kernels(), random_kernels(), contraction_kernels(), convolution_kernels(), sort_kernels(),
                    scan_kernels(), all_reduce_kernels()})
    for (const auto& row : rows) table[static_cast<size_t>(row.op)] = &row;
  return table;
}

}  // namespace

const KernelRow* find_kernel(Op op) {
  static const Table table = make_table();
  return table[static_cast<size_t>(op)];
}

void make_kernel(const Graph& graph, Step& step) {
  const Node& node = graph.nodes()[static_cast<size_t>(step.nodes[0])];
  step.kernel = find_kernel(node.op)->make(graph, node);
}

std::vector<Step> make_steps(const Graph& graph) {
  std::vector<Step> steps = one_step_a_node(graph);
  for (Step& step : steps) make_kernel(graph, step);
  return steps;
}

}  // namespace tutti::reference
