// Ops that move elements without looking at them.
#include <algorithm>
#include <cstring>

#include "tutti/device/reference/integers.h"
#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/strided_copy.h"

namespace tutti::reference {

namespace {

// A copy whose source and target start `from` and `to` elements into their values.
Kernel copy(const Type& type, const Ints& extents, const Ints& from_strides, int64_t from, const Ints& to_strides, int64_t to) {
  int64_t bytes = byte_size(type.dtype);
  return {[move = StridedCopy(bytes, extents, from_strides, to_strides), from = from * bytes, to = to * bytes](const Pointers& p) {
            move(p.operands[0] + from, p.results[0] + to);
          },
          0};
}

Kernel broadcast_in_dim(const Graph& graph, const Node& node) {
  const Type &from = operand_type(graph, node, 0), &to = result_type(graph, node);
  const Ints& dimensions = node.attributes.ints("dimensions");
  Ints strides(static_cast<size_t>(to.shape.rank()), 0), own = from.shape.strides();
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (from.shape[static_cast<int64_t>(i)] != 1) strides[static_cast<size_t>(dimensions[i])] = own[i];
  return copy(to, to.shape.extents(), strides, 0, to.shape.strides(), 0);
}

Kernel transpose(const Graph& graph, const Node& node) {
  const Type &from = operand_type(graph, node, 0), &to = result_type(graph, node);
  Ints strides, own = from.shape.strides();
  for (int64_t axis : node.attributes.ints("permutation")) strides.push_back(own[static_cast<size_t>(axis)]);
  return copy(to, to.shape.extents(), strides, 0, to.shape.strides(), 0);
}

Kernel slice(const Graph& graph, const Node& node) {
  const Type &from = operand_type(graph, node, 0), &to = result_type(graph, node);
  const Ints &start = node.attributes.ints("start"), &steps = node.attributes.ints("strides");
  Ints strides = from.shape.strides();
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += start[i] * strides[i];
    // An axis of one element takes no step; its stride may be any number a caller wrote.
    strides[i] = to.shape[static_cast<int64_t>(i)] <= 1 ? 0 : strides[i] * steps[i];
  }
  return copy(to, to.shape.extents(), strides, offset, to.shape.strides(), 0);
}

Kernel reverse(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  Ints strides = type.shape.strides(), from = strides;
  int64_t offset = 0;
  for (int64_t axis : node.attributes.ints("dimensions")) {
    auto at = static_cast<size_t>(axis);
    offset += (type.shape[axis] - 1) * strides[at];
    from[at] = -strides[at];
  }
  return copy(type, type.shape.extents(), from, offset, strides, 0);
}

// Padding may be negative and cut elements off; only those that stay inside are copied.
Kernel pad(const Graph& graph, const Node& node) {
  const Type &from = operand_type(graph, node, 0), &to = result_type(graph, node);
  const Ints &low = node.attributes.ints("low"), &interior = node.attributes.ints("interior");
  Ints from_strides = from.shape.strides(), to_strides = to.shape.strides(), extents(from_strides.size());
  int64_t from_offset = 0, to_offset = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    int64_t step = interior[i] + 1, extent = to.shape[static_cast<int64_t>(i)];
    int64_t first = low[i] >= 0 ? 0 : (-low[i] + step - 1) / step;
    int64_t last = extent - 1 < low[i] ? -1 : (extent - 1 - low[i]) / step;  // inclusive
    last = std::min(last, from.shape[static_cast<int64_t>(i)] - 1);
    extents[i] = std::max<int64_t>(0, last - first + 1);
    if (extents[i] == 0) continue;
    from_offset += first * from_strides[i];
    to_offset += (low[i] + first * step) * to_strides[i];
    to_strides[i] = extents[i] <= 1 ? 0 : to_strides[i] * step;
  }
  Kernel inside = copy(to, extents, from_strides, from_offset, to_strides, to_offset);
  StridedCopy fill(byte_size(to.dtype), {to.shape.elements()}, {0}, {1});
  return {[inside = std::move(inside.run), fill = std::move(fill)](const Pointers& p) {
            fill(p.operands[1], p.results[0]);
            inside(p);
          },
          0};
}

Kernel concatenate(const Graph& graph, const Node& node) {
  const Type& to = result_type(graph, node);
  int64_t offset = 0, bytes = byte_size(to.dtype);
  auto axis = node.attributes.integer("dimension");
  Ints strides = to.shape.strides();
  struct Part {
    StridedCopy copy;
    int64_t offset;
  };
  std::vector<Part> parts;
  for (ValueId id : node.operands) {
    const Shape& shape = graph.type(id).shape;
    parts.push_back({StridedCopy(bytes, shape.extents(), shape.strides(), strides), offset * bytes});
    offset += shape[axis] * strides[static_cast<size_t>(axis)];
  }
  return {[parts = std::move(parts)](const Pointers& p) {
            for (size_t i = 0; i < parts.size(); ++i) parts[i].copy(p.operands[i], p.results[0] + parts[i].offset);
          },
          0};
}

// Reads one start an axis from operands `first`..., clamps each so that a block of `sizes` fits, and gives the block's offset in elements.
class BlockStart {
 public:
  BlockStart(const Graph& graph, const Node& node, size_t first, const Shape& whole, const Ints& sizes) : first_(first) {
    Ints strides = whole.strides();
    for (size_t i = 0; i < sizes.size(); ++i)
      axes_.push_back({operand_type(graph, node, first + i).dtype, whole[static_cast<int64_t>(i)] - sizes[i], strides[i]});
  }
  int64_t operator()(const Pointers& p) const {
    int64_t offset = 0;
    for (size_t i = 0; i < axes_.size(); ++i)
      offset += clamped_index(axes_[i].dtype, p.operands[first_ + i], 0, axes_[i].last) * axes_[i].stride;
    return offset;
  }

 private:
  struct Axis {
    DType dtype;
    int64_t last, stride;
  };
  size_t first_;
  std::vector<Axis> axes_;
};

Kernel dynamic_slice(const Graph& graph, const Node& node) {
  const Type &from = operand_type(graph, node, 0), &to = result_type(graph, node);
  int64_t bytes = byte_size(to.dtype);
  return {[bytes, start = BlockStart(graph, node, 1, from.shape, to.shape.extents()),
           move = StridedCopy(bytes, to.shape.extents(), from.shape.strides(), to.shape.strides())](const Pointers& p) {
            move(p.operands[0] + start(p) * bytes, p.results[0]);
          },
          0};
}

Kernel dynamic_update_slice(const Graph& graph, const Node& node) {
  const Type &to = result_type(graph, node), &update = operand_type(graph, node, 1);
  int64_t bytes = byte_size(to.dtype);
  return {[bytes, all = static_cast<size_t>(to.bytes()), start = BlockStart(graph, node, 2, to.shape, update.shape.extents()),
           move = StridedCopy(bytes, update.shape.extents(), update.shape.strides(), to.shape.strides())](const Pointers& p) {
            std::memcpy(p.results[0], p.operands[0], all);
            move(p.operands[1], p.results[0] + start(p) * bytes);
          },
          0};
}

constexpr KernelRow rows[] = {
    {Op::broadcast_in_dim, broadcast_in_dim},
    {Op::transpose, transpose},
    {Op::slice, slice},
    {Op::reverse, reverse},
    {Op::pad, pad},
    {Op::concatenate, concatenate},
    {Op::dynamic_slice, dynamic_slice},
    {Op::dynamic_update_slice, dynamic_update_slice},
};

}  // namespace

std::span<const KernelRow> movement_kernels() { return rows; }

}  // namespace tutti::reference
