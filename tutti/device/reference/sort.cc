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

template <class W>
class Sort {
 public:
  Sort(const Graph& graph, const Node& node, Rows<W> rows) : rows_(rows) {
    const Shape& shape = result_type(graph, node).shape;
    int64_t axis = node.attributes.integer("dimension");
    extent_ = shape[axis];
    stride_ = shape.strides()[static_cast<size_t>(axis)];
    outer_ = shape.elements() == 0 ? 0 : shape.elements() / (extent_ * stride_);
    descending_ = node.attributes.integer("descending") != 0;
    for (ValueId id : node.results) bytes_.push_back(byte_size(graph.type(id).dtype));
  }

  // The keys and order of one line of the axis.
  int64_t workspace() const { return outer_ == 0 ? 0 : extent_ * static_cast<int64_t>(sizeof(W) + sizeof(int64_t)); }

  void operator()(const Pointers& p) const {
    auto* order = reinterpret_cast<int64_t*>(p.workspace);
    auto* keys = reinterpret_cast<W*>(order + extent_);
    for (int64_t o = 0; o < outer_; ++o)
      for (int64_t i = 0; i < stride_; ++i) {
        int64_t base = o * extent_ * stride_ + i;
        for (int64_t k = 0; k < extent_; ++k) rows_.read(p.operands[0] + (base + k * stride_) * rows_.bytes, keys + k, 1);
        std::iota(order, order + extent_, 0);
        // Stable by the tie-break: std::stable_sort allocates.
        std::sort(order, order + extent_, [&](int64_t a, int64_t b) {
          const W low = descending_ ? keys[b] : keys[a], high = descending_ ? keys[a] : keys[b];
          return before(low, high) || (!before(high, low) && a < b);
        });
        for (size_t v = 0; v < bytes_.size(); ++v)
          for (int64_t k = 0; k < extent_; ++k)
            std::memcpy(p.results[v] + (base + k * stride_) * bytes_[v], p.operands[v] + (base + order[k] * stride_) * bytes_[v],
                        static_cast<size_t>(bytes_[v]));
      }
  }

 private:
  Rows<W> rows_;
  int64_t extent_, stride_, outer_;
  bool descending_;
  std::vector<int64_t> bytes_;  // of an element, per operand
};

Kernel sort(const Graph& graph, const Node& node) {
  return dispatch_rows(result_type(graph, node).dtype, [&](auto rows) -> Kernel {
    Sort<typename decltype(rows)::Wide> sort(graph, node, rows);
    int64_t workspace = sort.workspace();
    return {std::move(sort), workspace};
  });
}

}  // namespace

std::span<const KernelRow> sort_kernels() {
  static constexpr KernelRow rows[] = {{Op::sort, sort}};
  return rows;
}

}  // namespace tutti::reference
