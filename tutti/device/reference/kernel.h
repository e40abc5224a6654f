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
    contraction_kernels(), convolution_kernels(), sort_kernels(), scan_kernels();

// The row of an op, or nothing: a leaf or a view.
const KernelRow* find_kernel(Op op);
// Gives a step of one node its kernel.
void make_kernel(const Graph& graph, Step& step);
// The whole graph as steps, a node each.
std::vector<Step> make_steps(const Graph& graph);

}  // namespace tutti::reference
