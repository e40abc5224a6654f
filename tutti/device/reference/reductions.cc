// reduce and reduce_window.
#include <algorithm>
#include <array>

#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/wide.h"

namespace tutti::reference {

namespace {

bool contains(const Ints& list, int64_t item) { return std::find(list.begin(), list.end(), item) != list.end(); }

// Walks the operand in memory order and accumulates into one wide element per result; neighbouring axes of the same fate are joined.
template <class T, class F>
Kernel reduce_with(const Graph& graph, const Node& node) {
  struct Axis {
    int64_t extent, stride;  // in the result
  };
  const Shape &from = operand_type(graph, node, 0).shape, &to = result_type(graph, node).shape;
  const Ints& dimensions = node.attributes.ints("dimensions");
  std::vector<Axis> axes;
  Ints strides = to.strides();
  size_t kept = 0;
  for (int64_t i = 0; i < from.rank(); ++i) {
    Axis axis{from[i], contains(dimensions, i) ? 0 : strides[kept++]};
    if (!axes.empty() && axes.back().stride == axis.stride * axis.extent) {
      axes.back() = {axes.back().extent * axis.extent, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, 0});
  int64_t count = from.elements(), results = to.elements();
  return {[axes, count, results, position = Ints(axes.size())](const Pointers& p) mutable {
            auto* x = reinterpret_cast<const T*>(p.operands[0]);
            auto* sums = reinterpret_cast<Wide<T>*>(p.workspace);
            std::fill(sums, sums + results, identity<T, F>());
            std::fill(position.begin(), position.end(), 0);
            const Axis row = axes.back();
            Wide<T>* sum = sums;
            for (int64_t done = 0; done < count; done += row.extent, x += row.extent) {
              if (row.stride == 0) {
                Wide<T> total = *sum;
                for (int64_t i = 0; i < row.extent; ++i) total = F{}(total, widen(x[i]));
                *sum = total;
              } else {
                for (int64_t i = 0; i < row.extent; ++i) sum[i] = F{}(sum[i], widen(x[i]));
              }
              for (size_t a = axes.size() - 1; a-- > 0;) {
                sum += axes[a].stride;
                if (++position[a] < axes[a].extent) break;
                sum -= axes[a].stride * axes[a].extent;
                position[a] = 0;
              }
            }
            auto* out = reinterpret_cast<T*>(p.results[0]);
            for (int64_t i = 0; i < results; ++i) out[i] = narrow<T>(sums[i]);
          },
          results * static_cast<int64_t>(sizeof(Wide<T>))};
}

Kernel reduce(const Graph& graph, const Node& node) {
  return dispatch(operand_type(graph, node, 0).dtype, [&](auto zero) {
    return dispatch_kind(node.attributes.text("kind"), [&](auto f) { return reduce_with<decltype(zero), decltype(f)>(graph, node); });
  });
}

// Trailing axes that the window does not touch form a row that is accumulated as a whole; for the others, each output position walks its
// window and skips what falls into padding or between dilated elements.
template <class T, class F>
class WindowReduction {
 public:
  WindowReduction(const Graph& graph, const Node& node) {
    const auto& a = node.attributes;
    const Shape &from = operand_type(graph, node, 0).shape, &to = result_type(graph, node).shape;
    Ints strides = from.strides();
    int64_t rank = from.rank();
    auto untouched = [&](int64_t i) {
      auto at = static_cast<size_t>(i);
      return a.ints("window")[at] == 1 && a.ints("strides")[at] == 1 && a.ints("base_dilation")[at] == 1 && a.ints("low")[at] == 0 &&
             a.ints("high")[at] == 0;
    };
    while (rank > 0 && untouched(rank - 1)) row_ *= from[--rank];
    for (int64_t i = 0; i < rank; ++i) {
      auto at = static_cast<size_t>(i);
      axes_.push_back({to[i], from[i], strides[at], a.ints("window")[at], a.ints("strides")[at], a.ints("base_dilation")[at],
                       a.ints("window_dilation")[at], a.ints("low")[at]});
    }
    outputs_ = to.elements() == 0 ? 0 : to.elements() / row_;
    empty_input_ = from.elements() == 0;
    position_.resize(axes_.size());
  }

  void operator()(const Pointers& p) {
    auto* from = reinterpret_cast<const T*>(p.operands[0]);
    auto* to = reinterpret_cast<T*>(p.results[0]);
    std::fill(position_.begin(), position_.end(), 0);
    for (int64_t o = 0; o < outputs_; ++o, to += row_) {
      for (int64_t start = 0; start < row_; start += chunk) {
        int64_t length = std::min(chunk, row_ - start);
        std::fill_n(sums_.begin(), length, identity<T, F>());
        if (!empty_input_) accumulate(0, from + start, length);
        for (int64_t i = 0; i < length; ++i) to[start + i] = narrow<T>(sums_[static_cast<size_t>(i)]);
      }
      for (size_t a = axes_.size(); a-- > 0;) {
        if (++position_[a] < axes_[a].outputs) break;
        position_[a] = 0;
      }
    }
  }

 private:
  static constexpr int64_t chunk = 256;
  struct Axis {
    int64_t outputs, inputs, input_stride, window, stride, base_dilation, window_dilation, low;
  };

  void accumulate(size_t axis, const T* from, int64_t length) {
    if (axis == axes_.size()) {
      Wide<T>* sums = sums_.data();
      for (int64_t i = 0; i < length; ++i) sums[i] = F{}(sums[i], widen(from[i]));
      return;
    }
    const Axis& a = axes_[axis];
    int64_t origin = position_[axis] * a.stride - a.low, reach = (a.inputs - 1) * a.base_dilation;
    // The first and last taps whose places are not before or behind the input.
    int64_t first = origin >= 0 ? 0 : (-origin + a.window_dilation - 1) / a.window_dilation;
    int64_t last = reach < origin ? -1 : std::min(a.window - 1, (reach - origin) / a.window_dilation);
    for (int64_t w = first; w <= last; ++w) {
      int64_t place = origin + w * a.window_dilation;
      if (place % a.base_dilation == 0) accumulate(axis + 1, from + place / a.base_dilation * a.input_stride, length);
    }
  }

  std::vector<Axis> axes_;
  int64_t row_ = 1, outputs_ = 0;
  bool empty_input_ = false;
  Ints position_;
  std::array<Wide<T>, chunk> sums_;
};

Kernel reduce_window(const Graph& graph, const Node& node) {
  return dispatch(operand_type(graph, node, 0).dtype, [&](auto zero) {
    return dispatch_kind(node.attributes.text("kind"), [&](auto f) -> Kernel {
      return {WindowReduction<decltype(zero), decltype(f)>(graph, node), 0};
    });
  });
}

constexpr KernelRow rows[] = {{Op::reduce, reduce}, {Op::reduce_window, reduce_window}};

}  // namespace

std::span<const KernelRow> reduction_kernels() { return rows; }

}  // namespace tutti::reference
