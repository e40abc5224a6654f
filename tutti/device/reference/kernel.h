// A kernel of the reference device: made once per node at compile time, when types and attributes are known; run on pointers. Each op
// family is a file with a table of its ops, and makes its kernels through them.
#pragma once

#include <functional>
#include <span>

#include "tutti/graph/graph.h"

namespace tutti::reference {

struct Pointers {
  const std::byte* const* operands;
  std::byte* const* results;
  std::byte* workspace;
};

struct Kernel {
  std::function<void(const Pointers&)> run;
  int64_t workspace = 0;  // bytes
};

struct KernelRow {
  Op op;
  Kernel (*make)(const Graph&, const Node&);
};

std::span<const KernelRow> elementwise_kernels(), binary_kernels(), movement_kernels(), gather_scatter_kernels(), reduction_kernels(),
    contraction_kernels(), convolution_kernels(), sort_kernels(), scan_kernels();

// The row of an op, or nothing: a leaf.
const KernelRow* find_kernel(Op op);

inline const Type& operand_type(const Graph& graph, const Node& node, size_t i) { return graph.type(node.operands[i]); }
inline const Type& result_type(const Graph& graph, const Node& node, size_t i = 0) { return graph.type(node.results[i]); }

}  // namespace tutti::reference
