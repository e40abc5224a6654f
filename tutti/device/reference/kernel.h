// The kernels of the reference device. Each op family is a file with a table of its ops, and makes its kernels through them.
#pragma once

#include <span>

#include "tutti/device/step.h"

namespace tutti::reference {

struct KernelRow {
  Op op;
  Kernel (*make)(const Graph&, const Node&);
};

std::span<const KernelRow> elementwise_kernels(), binary_kernels(), movement_kernels(), gather_scatter_kernels(), reduction_kernels(),
    select_and_scatter_kernels(), random_kernels(), contraction_kernels(), convolution_kernels(), sort_kernels(), scan_kernels(),
    all_reduce_kernels();

// Bytes for so many counters of loops, at the beginning of a workspace.
constexpr int64_t counter_bytes(size_t counters) { return static_cast<int64_t>((counters * sizeof(int64_t) + 63) / 64 * 64); }

// The row of an op, or nothing: a leaf or a view.
const KernelRow* find_kernel(Op op);
// Gives a step of one node its kernel.
void make_kernel(const Graph& graph, Step& step);
// The whole graph as steps, a node each.
std::vector<Step> make_steps(const Graph& graph);

}  // namespace tutti::reference
