// select_and_scatter: the gradient of pooling by maximum or minimum.
#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/wide.h"

namespace tutti::reference {

namespace {

class SelectAndScatter {
 public:
  SelectAndScatter(const Graph& graph, const Node& node, Rows<double> rows)
      : rows_(rows), largest_(node.attributes.text("kind") == "max"), count_(operand_type(graph, node, 0).shape.elements()) {
    const auto& a = node.attributes;
    const Shape &from = operand_type(graph, node, 0).shape, &windows = operand_type(graph, node, 1).shape;
    for (int64_t i = 0; i < from.rank(); ++i) {
      const auto at = static_cast<size_t>(i);
      axes_.push_back({windows[i], from[i], from.strides()[at], a.ints("window")[at], a.ints("strides")[at], a.ints("base_dilation")[at],
                       a.ints("window_dilation")[at], a.ints("low")[at]});
    }
    windows_ = count_ == 0 ? 0 : windows.elements();
  }

  // The operand and the sums, both wide.
  int64_t workspace() const { return counter_bytes(axes_.size()) + 2 * count_ * static_cast<int64_t>(sizeof(double)); }

  void operator()(const Pointers& p) const {
    auto* position = reinterpret_cast<int64_t*>(p.workspace);
    auto* x = reinterpret_cast<double*>(p.workspace + counter_bytes(axes_.size()));
    double* sums = x + count_;
    rows_.read(p.operands[0], x, count_);
    std::fill(sums, sums + count_, 0.0);
    std::fill_n(position, axes_.size(), 0);
    for (int64_t w = 0; w < windows_; ++w) {
      int64_t found = -1;
      search(0, x, 0, position, found);
      double g = 0;
      rows_.read(p.operands[1] + w * rows_.bytes, &g, 1);
      if (found >= 0) sums[found] += g;
      for (size_t a = axes_.size(); a-- > 0;) {
        if (++position[a] < axes_[a].windows) break;
        position[a] = 0;
      }
    }
    rows_.write(sums, p.results[0], count_);
  }

 private:
  struct Axis {
    int64_t windows, inputs, input_stride /* elements */, window, stride, base_dilation, window_dilation, low;
  };

  bool is_better(double candidate, double best) const {
    if (best != best) return false;
    return candidate != candidate || (largest_ ? candidate > best : candidate < best);
  }

  // The best place of the window at `position`.
  void search(size_t axis, const double* x, int64_t offset, const int64_t* position, int64_t& found) const {
    if (axis == axes_.size()) {
      if (found < 0 || is_better(x[offset], x[found])) found = offset;
      return;
    }
    const Axis& a = axes_[axis];
    const int64_t origin = position[axis] * a.stride - a.low, reach = (a.inputs - 1) * a.base_dilation;
    const int64_t first = origin >= 0 ? 0 : (-origin + a.window_dilation - 1) / a.window_dilation;
    const int64_t last = reach < origin ? -1 : std::min(a.window - 1, (reach - origin) / a.window_dilation);
    for (int64_t w = first; w <= last; ++w) {
      const int64_t place = origin + w * a.window_dilation;
      if (place % a.base_dilation == 0) search(axis + 1, x, offset + place / a.base_dilation * a.input_stride, position, found);
    }
  }

  Rows<double> rows_;
  bool largest_;
  int64_t count_, windows_ = 0;
  std::vector<Axis> axes_;
};

Kernel select_and_scatter(const Graph& graph, const Node& node) {
  return dispatch_rows(operand_type(graph, node, 0).dtype, [&](auto rows) -> Kernel {
    if constexpr (std::is_same_v<typename decltype(rows)::Wide, double>) {
      SelectAndScatter kernel(graph, node, rows);
      const int64_t workspace = kernel.workspace();
      return {std::move(kernel), workspace};
    } else {
      fail<InternalError>("reference", "select_and_scatter takes floats");
    }
  });
}

}  // namespace

std::span<const KernelRow> select_and_scatter_kernels() {
  static constexpr KernelRow rows[] = {{Op::select_and_scatter, select_and_scatter}};
  return rows;
}

}  // namespace tutti::reference
