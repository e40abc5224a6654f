// Ops that move elements without looking at them.
#include <algorithm>
#include <cstring>

#include "tutti/device/reference/integers.h"
#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/moves.h"

namespace tutti::reference {

namespace {

// A copy of operand 0 whose source and target start `from` and `to` elements into their values.
Moves copy(const Type& type, const Ints& extents, const Ints& from_strides, int64_t from, const Ints& to_strides, int64_t to) {
  const int64_t bytes = byte_size(type.dtype);
  return {{StridedCopy(bytes, extents, from_strides, to_strides), 0, from * bytes, to * bytes}};
}

Moves broadcast_in_dim(const Graph& graph, const Node& node) {
  const Type &from = operand_type(graph, node, 0), &to = result_type(graph, node);
  const Ints& dimensions = node.attributes.ints("dimensions");
  Ints strides(static_cast<size_t>(to.shape.rank()), 0), own = from.shape.strides();
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (from.shape[static_cast<int64_t>(i)] != 1) strides[static_cast<size_t>(dimensions[i])] = own[i];
  return copy(to, to.shape.extents(), strides, 0, to.shape.strides(), 0);
}

Moves transpose(const Graph& graph, const Node& node) {
  const Type &from = operand_type(graph, node, 0), &to = result_type(graph, node);
  Ints strides, own = from.shape.strides();
  for (int64_t axis : node.attributes.ints("permutation")) strides.push_back(own[static_cast<size_t>(axis)]);
  return copy(to, to.shape.extents(), strides, 0, to.shape.strides(), 0);
}

Moves slice(const Graph& graph, const Node& node) {
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

Moves reverse(const Graph& graph, const Node& node) {
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
Moves pad(const Graph& graph, const Node& node) {
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
  Moves moves = copy(to, extents, from_strides, from_offset, to_strides, to_offset);
  moves.insert(moves.begin(), {StridedCopy(byte_size(to.dtype), {to.shape.elements()}, {0}, {1}), 1, 0, 0});
  return moves;
}

Moves concatenate(const Graph& graph, const Node& node) {
  const Type& to = result_type(graph, node);
  const auto axis = node.attributes.integer("dimension");
  const Ints strides = to.shape.strides();
  int64_t offset = 0;
  Moves moves;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Shape& shape = operand_type(graph, node, i).shape;
    const int64_t bytes = byte_size(to.dtype);
    moves.push_back({StridedCopy(bytes, shape.extents(), shape.strides(), strides), i, 0, offset * bytes});
    offset += shape[axis] * strides[static_cast<size_t>(axis)];
  }
  return moves;
}

Kernel move(const Graph& graph, const Node& node) {
  return {[moves = moves_of(graph, node)](const Pointers& p) {
            for (const Move& move : moves) move.copy(p.operands[move.operand] + move.from, p.results[0] + move.to);
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

}  // namespace

Moves moves_of(const Graph& graph, const Node& node) {
  switch (node.op) {
    case Op::broadcast_in_dim: return broadcast_in_dim(graph, node);
    case Op::transpose: return transpose(graph, node);
    case Op::slice: return slice(graph, node);
    case Op::reverse: return reverse(graph, node);
    case Op::pad: return pad(graph, node);
    case Op::concatenate: return concatenate(graph, node);
    default: return {};
  }
}

std::span<const KernelRow> movement_kernels() {
  static constexpr KernelRow rows[] = {
      {Op::broadcast_in_dim, move},
      {Op::transpose, move},
      {Op::slice, move},
      {Op::reverse, move},
      {Op::pad, move},
      {Op::concatenate, move},
      {Op::dynamic_slice, dynamic_slice},
      {Op::dynamic_update_slice, dynamic_update_slice},
  };
  return rows;
}

}  // namespace tutti::reference
