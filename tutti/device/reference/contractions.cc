// dot_general: [batch, m, k] times [batch, k, n], in whatever order the operands hold their axes.
#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/multiply_rows.h"
#include "tutti/device/reference/strided_copy.h"

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

bool is_evenly_spaced(const Ints& offsets, int64_t spacing) {
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != static_cast<int64_t>(i) * spacing) return false;
  return true;
}

template <class S>
Kernel dot(const Graph& graph, const Node& node, SumRows<S> type) {
  const auto& a = node.attributes;
  const Shape &lhs = operand_type(graph, node, 0).shape, &rhs = operand_type(graph, node, 1).shape;
  Ints lhs_batch = offsets(lhs, a.ints("lhs_batch")), rhs_batch = offsets(rhs, a.ints("rhs_batch"));
  Ints lhs_free = others(lhs.rank(), a.ints("lhs_batch"), a.ints("lhs_contracting"));
  Ints rhs_free = others(rhs.rank(), a.ints("rhs_batch"), a.ints("rhs_contracting"));
  Ints lhs_m = offsets(lhs, lhs_free), rhs_n = offsets(rhs, rhs_free);
  Ints lhs_k = offsets(lhs, a.ints("lhs_contracting")), rhs_k = offsets(rhs, a.ints("rhs_contracting"));
  auto m = static_cast<int64_t>(lhs_m.size()), n = static_cast<int64_t>(rhs_n.size()), k = static_cast<int64_t>(lhs_k.size());
  const bool whole_rows = is_evenly_spaced(lhs_k, 1);

  // A right side that is not [k, n] with neighbouring columns and evenly spaced rows is first copied into that order.
  int64_t spacing = k > 1 ? rhs_k[1] - rhs_k[0] : n;
  const bool packed = !is_evenly_spaced(rhs_n, 1) || !is_evenly_spaced(rhs_k, spacing);
  Ints extents, strides = rhs.strides(), from;
  for (const Ints* axes : {&a.ints("rhs_contracting"), static_cast<const Ints*>(&rhs_free)})
    for (int64_t axis : *axes) {
      extents.push_back(rhs[axis]);
      from.push_back(strides[static_cast<size_t>(axis)]);
    }
  StridedCopy pack(type.bytes, extents, from, Shape(extents).strides());

  int64_t row_bytes = std::min(m, row_block) * k * static_cast<int64_t>(sizeof(S));
  return {[=](const Pointers& p) {
            auto* rows = reinterpret_cast<S*>(p.workspace);
            std::byte *copy = p.workspace + row_bytes, *out = p.results[0];
            for (size_t b = 0; b < lhs_batch.size(); ++b) {
              const std::byte* right = p.operands[1] + rhs_batch[b] * type.bytes;
              if (packed) {
                pack(right, copy);
                right = copy;
              }
              for (int64_t start = 0; start < m; start += row_block) {
                int64_t count = std::min(row_block, m - start);
                S* to = rows;
                for (int64_t r = 0; r < count; ++r, to += k) {
                  const std::byte* left = p.operands[0] + (lhs_batch[b] + lhs_m[static_cast<size_t>(start + r)]) * type.bytes;
                  if (whole_rows) {
                    type.read(left, to, k);
                  } else {
                    for (int64_t i = 0; i < k; ++i) type.read(left + lhs_k[static_cast<size_t>(i)] * type.bytes, to + i, 1);
                  }
                }
                multiply_rows(type, rows, count, k, right, packed ? n : spacing, n, out, n);
                out += count * n * type.bytes;
              }
            }
          },
          row_bytes + (packed ? n * k * type.bytes : 0)};
}

Kernel dot_general(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  if (type.shape.elements() == 0) return {[](const Pointers&) {}, 0};
  return dispatch_sums(type.dtype, [&](auto rows) { return dot(graph, node, rows); });
}

constexpr KernelRow rows[] = {{Op::dot_general, dot_general}};

}  // namespace

std::span<const KernelRow> contraction_kernels() { return rows; }

}  // namespace tutti::reference
