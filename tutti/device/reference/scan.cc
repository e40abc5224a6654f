#include "tutti/device/scan.h"

#include "tutti/device/reference/kernel.h"

namespace tutti::reference {

namespace {

Kernel scan(const Graph&, const Node& node) { return make_scan(node, make_steps(*node.body)); }

}  // namespace

std::span<const KernelRow> scan_kernels() {
  static constexpr KernelRow rows[] = {{Op::scan, scan}};
  return rows;
}

}  // namespace tutti::reference
