// gather and scatter: a block of the operand for each index vector.
#include <algorithm>
#include <array>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/device/reference/integers.h"
#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/strided_copy.h"
#include "tutti/device/reference/wide.h"

namespace tutti::reference {

namespace {

// The walk that both ops share: every index vector, where its block lies in the operand (offsets in elements, from the vector and the
// batching axes) and where in the blocks' tensor (gather's result, scatter's updates).
struct Walk {
  struct Component {  // of the index vector
    int64_t last;     // the largest start at which the block fits
    int64_t stride;   // in the operand
  };
  struct Axis {  // of the index tensor without the vector
    int64_t extent, index_stride, operand_stride, block_stride;
  };
  static constexpr size_t most_axes = 48;  // of two elements and more, in a shape of at most 2^48
  DType dtype;
  int64_t index_bytes, vector_stride, count = 1;
  std::vector<Component> components;
  std::vector<Axis> axes;

  Walk(const Type& indices, const Shape& operand, const Shape& blocks, const Ints& block_axes, const Ints& block_sizes, const Ints& map,
       const Ints& operand_batching, const Ints& index_batching, int64_t vector)
      : dtype(indices.dtype), index_bytes(byte_size(indices.dtype)) {
    Ints index_strides = indices.shape.strides(), operand_strides = operand.strides(), block_strides = blocks.strides();
    vector_stride = vector < indices.shape.rank() ? index_strides[static_cast<size_t>(vector)] : 0;
    for (int64_t axis : map) {
      auto at = static_cast<size_t>(axis);
      components.push_back({operand[axis] - block_sizes[at], operand_strides[at]});
    }
    int64_t block_axis = 0;
    for (int64_t i = 0; i < indices.shape.rank(); ++i) {
      if (i == vector) continue;
      while (includes(block_axes, block_axis)) ++block_axis;
      Axis axis{indices.shape[i], index_strides[static_cast<size_t>(i)], 0, block_strides[static_cast<size_t>(block_axis++)]};
      for (size_t b = 0; b < index_batching.size(); ++b)
        if (index_batching[b] == i) axis.operand_stride = operand_strides[static_cast<size_t>(operand_batching[b])];
      count *= axis.extent;
      if (axis.extent != 1) axes.push_back(axis);
    }
    if (axes.size() > most_axes) fail<InternalError>("device", "indices of {} axes", axes.size());
  }

  // Calls block(operand offset, blocks offset); blocks that do not fit are moved inside (clamp) or left out.
  template <bool clamp, class F>
  void run(const std::byte* indices, F&& block) const {
    std::array<int64_t, most_axes> position;
    std::fill_n(position.begin(), axes.size(), 0);
    int64_t index = 0, base = 0, target = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t offset = base;
      bool fits = true;
      for (size_t c = 0; c < components.size(); ++c) {
        int64_t start = read_index(dtype, indices + (index + static_cast<int64_t>(c) * vector_stride) * index_bytes);
        if (clamp) start = std::clamp<int64_t>(start, 0, components[c].last);
        fits &= start >= 0 && start <= components[c].last;
        if (fits) offset += start * components[c].stride;
      }
      if (fits) block(offset, target);
      for (size_t a = axes.size(); a-- > 0;) {
        index += axes[a].index_stride;
        base += axes[a].operand_stride;
        target += axes[a].block_stride;
        if (++position[a] < axes[a].extent) break;
        index -= axes[a].index_stride * axes[a].extent;
        base -= axes[a].operand_stride * axes[a].extent;
        target -= axes[a].block_stride * axes[a].extent;
        position[a] = 0;
      }
    }
  }
};

Kernel gather(const Graph& graph, const Node& node) {
  const auto& a = node.attributes;
  const Type &operand = operand_type(graph, node, 0), &to = result_type(graph, node);
  const Ints &offset_dims = a.ints("offset_dims"), &sizes = a.ints("slice_sizes"), &batching = a.ints("operand_batching_dims");
  int64_t bytes = byte_size(to.dtype);
  if (to.shape.elements() == 0) return {[](const Pointers&) {}, 0};
  Walk walk(operand_type(graph, node, 1), operand.shape, to.shape, offset_dims, sizes, a.ints("start_index_map"), batching,
            a.ints("start_indices_batching_dims"), a.integer("index_vector_dim"));
  Ints extents, from, into, operand_strides = operand.shape.strides(), to_strides = to.shape.strides();

  for (int64_t i = 0; i < operand.shape.rank(); ++i) {
    if (includes(a.ints("collapsed_slice_dims"), i) || includes(batching, i)) continue;
    into.push_back(to_strides[static_cast<size_t>(offset_dims[extents.size()])]);
    extents.push_back(sizes[static_cast<size_t>(i)]);
    from.push_back(operand_strides[static_cast<size_t>(i)]);
  }
  return {[bytes, walk = std::move(walk), move = StridedCopy(bytes, extents, from, into)](const Pointers& p) {
            walk.run<true>(p.operands[1],
                           [&](int64_t source, int64_t target) { move(p.operands[0] + source * bytes, p.results[0] + target * bytes); });
          },
          0};
}

template <class T, class F>
void combine_row(const std::byte* from, std::byte* to, int64_t count, int64_t from_step, int64_t to_step) {
  for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) {
    auto& into = *reinterpret_cast<T*>(to);
    into = narrow<T>(F{}(widen(into), widen(*reinterpret_cast<const T*>(from))));
  }
}

StridedCopy::Row row_of(DType dtype, const std::string& kind) {
  if (kind == "replace") return nullptr;
  return dispatch(dtype, [&](auto zero) {
    return dispatch_kind(kind, [](auto f) -> StridedCopy::Row { return combine_row<decltype(zero), decltype(f)>; });
  });
}

// As XLA does, an update block that does not fit entirely is left out entirely; blocks are applied in row-major order of the indices.
Kernel scatter(const Graph& graph, const Node& node) {
  const auto& a = node.attributes;
  const Type &to = result_type(graph, node), &updates = operand_type(graph, node, 2);
  const Ints& batching = a.ints("input_batching_dims");
  auto all = static_cast<size_t>(to.bytes());
  if (updates.shape.elements() == 0)
    return {[all](const Pointers& p) {
              if (all != 0) std::memcpy(p.results[0], p.operands[0], all);
            },
            0};
  const Ints& window = a.ints("update_window_dims");
  Ints sizes(static_cast<size_t>(to.shape.rank()), 1), extents, from, into;
  Ints to_strides = to.shape.strides(), update_strides = updates.shape.strides();
  for (int64_t i = 0; i < to.shape.rank(); ++i) {
    if (includes(a.ints("inserted_window_dims"), i) || includes(batching, i)) continue;
    int64_t axis = window[extents.size()];
    sizes[static_cast<size_t>(i)] = updates.shape[axis];
    extents.push_back(updates.shape[axis]);
    from.push_back(update_strides[static_cast<size_t>(axis)]);
    into.push_back(to_strides[static_cast<size_t>(i)]);
  }
  Walk walk(operand_type(graph, node, 1), to.shape, updates.shape, window, sizes, a.ints("scatter_dims_to_operand_dims"), batching,
            a.ints("scatter_indices_batching_dims"), a.integer("index_vector_dim"));
  int64_t bytes = byte_size(to.dtype);
  StridedCopy combine(bytes, extents, from, into, row_of(to.dtype, a.text("kind")));
  return {[all, bytes, walk = std::move(walk), combine = std::move(combine)](const Pointers& p) {
            if (all != 0) std::memcpy(p.results[0], p.operands[0], all);
            walk.run<false>(p.operands[1], [&](int64_t target, int64_t source) {
              combine(p.operands[2] + source * bytes, p.results[0] + target * bytes);
            });
          },
          0};
}

}  // namespace

std::span<const KernelRow> gather_scatter_kernels() {
  static constexpr KernelRow rows[] = {{Op::gather, gather}, {Op::scatter, scatter}};
  return rows;
}

}  // namespace tutti::reference
