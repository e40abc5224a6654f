// dot_general: [batch, m, k] times [batch, k, n], in whatever order the operands hold their axes.
#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/multiply_rows.h"

namespace tutti::reference {

namespace {

// The offset of every combination of positions along `axes`, row-major.
Ints offsets(const Shape& shape, const Ints& axes) {
  Ints out{0}, strides = shape.strides();
  for (int64_t axis : axes) {
    Ints longer;
    longer.reserve(out.size() * static_cast<size_t>(shape[axis]));
    for (int64_t offset : out)
      for (int64_t i = 0; i < shape[axis]; ++i) longer.push_back(offset + i * strides[static_cast<size_t>(axis)]);
    out = std::move(longer);
  }
  return out;
}

Ints others(int64_t rank, const Ints& a, const Ints& b) {
  Ints out;
  for (int64_t i = 0; i < rank; ++i)
    if (std::find(a.begin(), a.end(), i) == a.end() && std::find(b.begin(), b.end(), i) == b.end()) out.push_back(i);
  return out;
}

template <class T>
Kernel dot(const Graph& graph, const Node& node) {
  const auto& a = node.attributes;
  const Shape &lhs = operand_type(graph, node, 0).shape, &rhs = operand_type(graph, node, 1).shape;
  if (result_type(graph, node).shape.elements() == 0) return {[](const Pointers&) {}, 0};
  Ints lhs_batch = offsets(lhs, a.ints("lhs_batch")), rhs_batch = offsets(rhs, a.ints("rhs_batch"));
  Ints lhs_m = offsets(lhs, others(lhs.rank(), a.ints("lhs_batch"), a.ints("lhs_contracting")));
  Ints rhs_n = offsets(rhs, others(rhs.rank(), a.ints("rhs_batch"), a.ints("rhs_contracting")));
  Ints lhs_k = offsets(lhs, a.ints("lhs_contracting")), rhs_k = offsets(rhs, a.ints("rhs_contracting"));
  auto m = static_cast<int64_t>(lhs_m.size()), n = static_cast<int64_t>(rhs_n.size()), k = static_cast<int64_t>(lhs_k.size());

  // A right side that is not [k, n] with neighbouring columns and evenly spaced rows is first copied into that order.
  int64_t spacing = k > 1 ? rhs_k[1] - rhs_k[0] : n;
  bool packed = false;
  for (int64_t i = 0; i < n; ++i) packed |= rhs_n[static_cast<size_t>(i)] != i;
  for (int64_t i = 0; i < k; ++i) packed |= rhs_k[static_cast<size_t>(i)] != i * spacing;
  int64_t a_bytes = std::min(m, row_block) * k * static_cast<int64_t>(sizeof(Sum<T>));
  int64_t packed_bytes = packed ? n * k * static_cast<int64_t>(sizeof(T)) : 0;
  return {[=](const Pointers& p) {
            auto* x = reinterpret_cast<const T*>(p.operands[0]);
            auto* y = reinterpret_cast<const T*>(p.operands[1]);
            auto* out = reinterpret_cast<T*>(p.results[0]);
            auto* rows = reinterpret_cast<Sum<T>*>(p.workspace);
            auto* copy = reinterpret_cast<T*>(p.workspace + a_bytes);
            for (size_t b = 0; b < lhs_batch.size(); ++b) {
              const T* right = y + rhs_batch[b];
              if (packed) {
                T* to = copy;
                for (int64_t row : rhs_k)
                  for (int64_t column : rhs_n) *to++ = right[row + column];
                right = copy;
              }
              for (int64_t start = 0; start < m; start += row_block, out += row_block * n) {
                int64_t count = std::min(row_block, m - start);
                Sum<T>* to = rows;
                for (int64_t r = 0; r < count; ++r) {
                  const T* from = x + lhs_batch[b] + lhs_m[static_cast<size_t>(start + r)];
                  for (int64_t column : lhs_k) *to++ = to_sum(from[column]);
                }
                multiply_rows<T>(rows, count, k, right, packed ? n : spacing, n, out, n);
                if (count < row_block) out -= (row_block - count) * n;
              }
            }
          },
          a_bytes + packed_bytes};
}

Kernel dot_general(const Graph& graph, const Node& node) {
  return dispatch(result_type(graph, node).dtype, [&](auto zero) { return dot<decltype(zero)>(graph, node); });
}

constexpr KernelRow rows[] = {{Op::dot_general, dot_general}};

}  // namespace

std::span<const KernelRow> contraction_kernels() { return rows; }

}  // namespace tutti::reference
