// dot_general: [batch, m, k] times [batch, k, n], in whatever order the operands hold their axes.
#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/multiply_rows.h"
#include "tutti/device/reference/strided_copy.h"
#include "tutti/graph/matrix.h"

namespace tutti::reference {

namespace {

// Some axes of a shape: where each combination of positions along them lies, row-major.
struct Axes {
  Ints extents, strides;
  int64_t count = 1;

  Axes(const Shape& shape, const Ints& axes) {
    Ints all = shape.strides();
    for (int64_t axis : axes) {
      extents.push_back(shape[axis]);
      strides.push_back(all[static_cast<size_t>(axis)]);
      count *= shape[axis];
    }
  }
  int64_t offset(int64_t index) const {
    int64_t out = 0;
    for (size_t i = extents.size(); i-- > 0; index /= extents[i]) out += index % extents[i] * strides[i];
    return out;
  }
  // The stride of the innermost axis that takes steps.
  int64_t spacing(int64_t otherwise) const {
    for (size_t i = extents.size(); i-- > 0;)
      if (extents[i] != 1) return strides[i];
    return otherwise;
  }
  bool is_evenly_spaced(int64_t step) const {
    for (size_t i = extents.size(); i-- > 0;) {
      if (extents[i] == 1) continue;
      if (strides[i] != step) return false;
      step *= extents[i];
    }
    return true;
  }
};

template <class S>
Kernel dot(const Graph& graph, const Node& node, SumRows<S> type) {
  const auto& a = node.attributes;
  const Shape &lhs = operand_type(graph, node, 0).shape, &rhs = operand_type(graph, node, 1).shape;
  const Axes lhs_batch(lhs, a.ints("lhs_batch")), rhs_batch(rhs, a.ints("rhs_batch"));
  const Axes lhs_m(lhs, free_axes(lhs.rank(), a.ints("lhs_batch"), a.ints("lhs_contracting")));
  const Axes rhs_n(rhs, free_axes(rhs.rank(), a.ints("rhs_batch"), a.ints("rhs_contracting")));
  const Axes lhs_k(lhs, a.ints("lhs_contracting")), rhs_k(rhs, a.ints("rhs_contracting"));
  const int64_t m = lhs_m.count, n = rhs_n.count, k = lhs_k.count;

  // A left row that is not dense is gathered first; so is a right side that is not [k, n] with dense, evenly spaced rows.
  const bool gathered = !lhs_k.is_evenly_spaced(1);
  const int64_t spacing = rhs_k.spacing(n);
  const bool packed = !rhs_n.is_evenly_spaced(1) || !rhs_k.is_evenly_spaced(spacing);
  StridedCopy gather(type.bytes, lhs_k.extents, lhs_k.strides, Shape(lhs_k.extents).strides());
  Ints extents = rhs_k.extents, strides = rhs_k.strides;
  extents.insert(extents.end(), rhs_n.extents.begin(), rhs_n.extents.end());
  strides.insert(strides.end(), rhs_n.strides.begin(), rhs_n.strides.end());
  StridedCopy pack(type.bytes, extents, strides, Shape(extents).strides());

  const int64_t rows_bytes = std::min(m, row_block) * k * static_cast<int64_t>(sizeof(S)), row_bytes = gathered ? k * type.bytes : 0;
  return {[=](const Pointers& p) {
            auto* rows = reinterpret_cast<S*>(p.workspace);
            std::byte *row = p.workspace + rows_bytes, *copy = row + row_bytes, *out = p.results[0];
            for (int64_t b = 0; b < lhs_batch.count; ++b) {
              const std::byte* right = p.operands[1] + rhs_batch.offset(b) * type.bytes;
              if (packed) {
                pack(right, copy);
                right = copy;
              }
              for (int64_t start = 0; start < m; start += row_block) {
                int64_t count = std::min(row_block, m - start);
                for (int64_t r = 0; r < count; ++r) {
                  const std::byte* left = p.operands[0] + (lhs_batch.offset(b) + lhs_m.offset(start + r)) * type.bytes;
                  if (gathered) gather(left, row);
                  type.read(gathered ? row : left, rows + r * k, k);
                }
                multiply_rows(type, rows, count, k, right, packed ? n : spacing, n, out, n);
                out += count * n * type.bytes;
              }
            }
          },
          rows_bytes + row_bytes + (packed ? n * k * type.bytes : 0)};
}

Kernel dot_general(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  if (type.shape.elements() == 0) return {[](const Pointers&) {}, 0};
  return dispatch_sums(type.dtype, [&](auto rows) { return dot(graph, node, rows); });
}

}  // namespace

std::span<const KernelRow> contraction_kernels() {
  static constexpr KernelRow rows[] = {{Op::dot_general, dot_general}};
  return rows;
}

}  // namespace tutti::reference
