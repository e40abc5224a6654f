#include "tutti/device/reference/kernel.h"

#include <algorithm>
#include <array>

namespace tutti::reference {

namespace {

using Table = std::array<const KernelRow*, 256>;

Table make_table() {
  Table table{};
  for (auto rows : {elementwise_kernels(), binary_kernels(), movement_kernels(), gather_scatter_kernels(), reduction_kernels(),
                    contraction_kernels(), convolution_kernels(), sort_kernels(), scan_kernels()})
    for (const auto& row : rows) table[static_cast<size_t>(row.op)] = &row;
  return table;
}

}  // namespace

const KernelRow* find_kernel(Op op) {
  static const Table table = make_table();
  return table[static_cast<size_t>(op)];
}

}  // namespace tutti::reference
