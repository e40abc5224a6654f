// reduce and reduce_window.
#include <algorithm>
#include <array>

#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/wide.h"

namespace tutti::reference {

namespace {

// What a kind of reduction does to rows of wide elements.
template <class W>
struct Combine {
  W initial;
  void (*each)(W* sums, const W* x, int64_t count);  // sums[i] with x[i]
  W (*all)(W sum, const W* x, int64_t count);        // one sum with every x[i]
};

template <class W, class F>
Combine<W> combine_of(DType dtype) {
  return {identity<W, F>(dtype),
          [](W* sums, const W* x, int64_t count) {
            for (int64_t i = 0; i < count; ++i) sums[i] = F{}(sums[i], x[i]);
          },
          [](W sum, const W* x, int64_t count) {
            for (int64_t i = 0; i < count; ++i) sum = F{}(sum, x[i]);
            return sum;
          }};
}

// Walks the operand in memory order and accumulates into one wide element per result; neighbouring axes of the same fate are joined.
template <class W>
class Reduction {
 public:
  Reduction(const Graph& graph, const Node& node, Rows<W> rows, Combine<W> combine) : rows_(rows), combine_(combine) {
    const Shape &from = operand_type(graph, node, 0).shape, &to = result_type(graph, node).shape;
    Ints strides = to.strides();
    size_t kept = 0;
    for (int64_t i = 0; i < from.rank(); ++i) {
      Axis axis{from[i], includes(node.attributes.ints("dimensions"), i) ? 0 : strides[kept++]};
      if (!axes_.empty() && axes_.back().stride == axis.stride * axis.extent) {
        axes_.back() = {axes_.back().extent * axis.extent, axis.stride};
      } else {
        axes_.push_back(axis);
      }
    }
    if (axes_.empty()) axes_.push_back({1, 0});
    count_ = from.elements();
    results_ = to.elements();
  }

  int64_t workspace() const { return counter_bytes(axes_.size()) + results_ * static_cast<int64_t>(sizeof(W)); }

  void operator()(const Pointers& p) const {
    auto* position = reinterpret_cast<int64_t*>(p.workspace);
    auto* sums = reinterpret_cast<W*>(p.workspace + counter_bytes(axes_.size()));
    std::array<W, row_chunk> chunk;
    std::fill(sums, sums + results_, combine_.initial);
    std::fill_n(position, axes_.size(), 0);
    const Axis row = axes_.back();
    const std::byte* x = p.operands[0];
    W* sum = sums;
    for (int64_t done = 0; done < count_; done += row.extent) {
      for (int64_t start = 0; start < row.extent; start += row_chunk) {
        int64_t length = std::min(row_chunk, row.extent - start);
        rows_.read(x, chunk.data(), length);
        x += length * rows_.bytes;
        if (row.stride == 0) {
          *sum = combine_.all(*sum, chunk.data(), length);
        } else {
          combine_.each(sum + start, chunk.data(), length);
        }
      }
      for (size_t a = axes_.size() - 1; a-- > 0;) {
        sum += axes_[a].stride;
        if (++position[a] < axes_[a].extent) break;
        sum -= axes_[a].stride * axes_[a].extent;
        position[a] = 0;
      }
    }
    rows_.write(sums, p.results[0], results_);
  }

 private:
  struct Axis {
    int64_t extent, stride;  // in the result
  };

  Rows<W> rows_;
  Combine<W> combine_;
  std::vector<Axis> axes_;
  int64_t count_, results_;
};

// Trailing axes that the window does not touch form a row that is accumulated as a whole; for the others, each output position walks its
// window and skips what falls into padding or between dilated elements.
template <class W>
class WindowReduction {
 public:
  WindowReduction(const Graph& graph, const Node& node, Rows<W> rows, Combine<W> combine) : rows_(rows), combine_(combine) {
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
      axes_.push_back({to[i], from[i], strides[at] * rows.bytes, a.ints("window")[at], a.ints("strides")[at], a.ints("base_dilation")[at],
                       a.ints("window_dilation")[at], a.ints("low")[at]});
    }
    outputs_ = to.elements() == 0 ? 0 : to.elements() / row_;
    empty_input_ = from.elements() == 0;
  }

  int64_t workspace() const { return counter_bytes(axes_.size()); }

  void operator()(const Pointers& p) const {
    Walk at{reinterpret_cast<int64_t*>(p.workspace), {}, {}};
    std::byte* to = p.results[0];
    std::fill_n(at.position, axes_.size(), 0);
    for (int64_t o = 0; o < outputs_; ++o) {
      for (int64_t start = 0; start < row_; start += row_chunk) {
        int64_t length = std::min(row_chunk, row_ - start);
        std::fill_n(at.sums.begin(), length, combine_.initial);
        if (!empty_input_) accumulate(0, p.operands[0] + start * rows_.bytes, length, at);
        rows_.write(at.sums.data(), to, length);
        to += length * rows_.bytes;
      }
      for (size_t a = axes_.size(); a-- > 0;) {
        if (++at.position[a] < axes_[a].outputs) break;
        at.position[a] = 0;
      }
    }
  }

 private:
  struct Axis {
    int64_t outputs, inputs, input_stride /* bytes */, window, stride, base_dilation, window_dilation, low;
  };

  // Where a run is.
  struct Walk {
    int64_t* position;  // by axis
    std::array<W, row_chunk> sums, chunk;
  };

  void accumulate(size_t axis, const std::byte* from, int64_t length, Walk& at) const {
    if (axis == axes_.size()) {
      rows_.read(from, at.chunk.data(), length);
      combine_.each(at.sums.data(), at.chunk.data(), length);
      return;
    }
    const Axis& a = axes_[axis];
    int64_t origin = at.position[axis] * a.stride - a.low, reach = (a.inputs - 1) * a.base_dilation;
    // The first and last taps whose places are not before or behind the input.
    int64_t first = origin >= 0 ? 0 : (-origin + a.window_dilation - 1) / a.window_dilation;
    int64_t last = reach < origin ? -1 : std::min(a.window - 1, (reach - origin) / a.window_dilation);
    for (int64_t w = first; w <= last; ++w) {
      int64_t place = origin + w * a.window_dilation;
      if (place % a.base_dilation == 0) accumulate(axis + 1, from + place / a.base_dilation * a.input_stride, length, at);
    }
  }

  Rows<W> rows_;
  Combine<W> combine_;
  std::vector<Axis> axes_;
  int64_t row_ = 1, outputs_ = 0;
  bool empty_input_ = false;
};

template <template <class> class How>
Kernel reduce(const Graph& graph, const Node& node) {
  DType dtype = operand_type(graph, node, 0).dtype;
  return dispatch_rows(dtype, [&](auto rows) {
    using W = typename decltype(rows)::Wide;
    return dispatch_kind(node.attributes.text("kind"), [&](auto f) -> Kernel {
      How<W> reduction(graph, node, rows, combine_of<W, decltype(f)>(dtype));
      int64_t workspace = reduction.workspace();
      return {std::move(reduction), workspace};
    });
  });
}

}  // namespace

std::span<const KernelRow> reduction_kernels() {
  static constexpr KernelRow rows[] = {{Op::reduce, reduce<Reduction>}, {Op::reduce_window, reduce<WindowReduction>}};
  return rows;
}

}  // namespace tutti::reference
