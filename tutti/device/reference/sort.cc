// sort: along one axis, all operands by the first; stable. NaN counts as the largest number (last when ascending, first when
// descending, as jax.lax.sort and top_k have it), and -0 equals 0.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/wide.h"

namespace tutti::reference {

namespace {

template <class W>
bool before(W a, W b) {
  if constexpr (std::is_same_v<W, double>) {
    if (a != a || b != b) return a == a && b != b;
  }
  return a < b;
}

Kernel sort(const Graph& graph, const Node& node) {
  const Shape& shape = result_type(graph, node).shape;
  int64_t axis = node.attributes.integer("dimension"), extent = shape[axis], stride = shape.strides()[static_cast<size_t>(axis)];
  int64_t outer = shape.elements() == 0 ? 0 : shape.elements() / (extent * stride);
  bool descending = node.attributes.integer("descending") != 0;
  std::vector<int64_t> bytes;
  for (ValueId id : node.results) bytes.push_back(byte_size(graph.type(id).dtype));
  if (outer == 0) return {[](const Pointers&) {}, 0};
  return dispatch(result_type(graph, node).dtype, [&](auto zero) -> Kernel {
    using T = decltype(zero);
    return {[=, order = Ints(static_cast<size_t>(extent))](const Pointers& p) mutable {
              for (int64_t o = 0; o < outer; ++o)
                for (int64_t i = 0; i < stride; ++i) {
                  int64_t base = o * extent * stride + i;
                  auto* keys = reinterpret_cast<const T*>(p.operands[0]) + base;
                  std::iota(order.begin(), order.end(), 0);
                  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
                    Wide<T> x = widen(keys[a * stride]), y = widen(keys[b * stride]);
                    return descending ? before(y, x) : before(x, y);
                  });
                  for (size_t v = 0; v < bytes.size(); ++v)
                    for (int64_t k = 0; k < extent; ++k)
                      std::memcpy(p.results[v] + (base + k * stride) * bytes[v],
                                  p.operands[v] + (base + order[static_cast<size_t>(k)] * stride) * bytes[v],
                                  static_cast<size_t>(bytes[v]));
                }
            },
            0};
  });
}

constexpr KernelRow rows[] = {{Op::sort, sort}};

}  // namespace

std::span<const KernelRow> sort_kernels() { return rows; }

}  // namespace tutti::reference
