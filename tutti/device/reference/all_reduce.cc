// all_reduce: the collective that the program has joined does the work; alone, it is a copy.
#include "tutti/base/error.h"
#include "tutti/device/bytes.h"
#include "tutti/device/collective.h"
#include "tutti/device/reference/kernel.h"

namespace tutti::reference {

namespace {

Kernel all_reduce(const Graph& graph, const Node& node) {
  std::vector<Type> types;
  for (ValueId id : node.operands) types.push_back(graph.type(id));
  const int64_t replicas = node.attributes.integer("replicas");
  const int64_t workspace = static_cast<int64_t>(types.size() * sizeof(Collective::Part));
  return {[types, replicas](const Pointers& p) {
            if (replicas == 1) {
              for (size_t i = 0; i < types.size(); ++i) copy_bytes(p.results[i], p.operands[i], types[i].bytes());
              return;
            }
            if (p.collective == nullptr) fail<DeviceError>("all_reduce", "a program of {} replicas runs alone", replicas);
            const std::span parts(reinterpret_cast<Collective::Part*>(p.workspace), types.size());
            for (size_t i = 0; i < types.size(); ++i) parts[i] = {p.operands[i], p.results[i], types[i].shape.elements()};
            p.collective->sum(types[0].dtype, parts);
          },
          workspace};
}

}  // namespace

std::span<const KernelRow> all_reduce_kernels() {
  static constexpr KernelRow rows[] = {{Op::all_reduce, all_reduce}};
  return rows;
}

}  // namespace tutti::reference
