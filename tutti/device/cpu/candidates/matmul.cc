#include "tutti/device/cpu/gemm/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/device/cpu/candidates/contraction.h"
#include "tutti/device/cpu/candidates/match_epilogue.h"
#include "tutti/device/cpu/gemm/batched_matmul.h"
#include "tutti/device/cpu/gemm/row_dots.h"
#include "tutti/graph/matrix.h"

namespace tutti::cpu {

namespace {

// The two sides of a dot_general as strided matrices: A [rows, depth] and B [depth, columns] for each place of the batch axes.
struct Sides {
  Run rows, a_depth, b_depth, columns;
};
std::optional<Sides> sides_of(const Graph& graph, const Node& node) {
  const Shape &a = operand_type(graph, node, 0).shape, &b = operand_type(graph, node, 1).shape;
  const auto& at = node.attributes;
  auto rows = as_one_axis(a, free_axes(a.rank(), at.ints("lhs_batch"), at.ints("lhs_contracting")));
  auto columns = as_one_axis(b, free_axes(b.rank(), at.ints("rhs_batch"), at.ints("rhs_contracting")));
  auto a_depth = as_one_axis(a, at.ints("lhs_contracting")), b_depth = as_one_axis(b, at.ints("rhs_contracting"));
  if (!rows || !columns || !a_depth || !b_depth) return {};
  return Sides{*rows, *a_depth, *b_depth, *columns};
}

// Of both candidates: why not, or nothing.
std::string_view refuses_dot(const Selection& selection, const Node& node) {
  for (ValueId id : {node.results[0], node.operands[0], node.operands[1]})
    if (selection.type(id).dtype != DType::f32) return "not of f32";
  if (selection.type(node.results[0]).shape.elements() == 0 || selection.type(node.operands[0]).shape.elements() == 0)
    return "nothing to do";
  return {};
}

// What zeros times such weights are is zeros.
bool is_finite(const Tensor& weights) {
  const auto values = weights.as<float>();
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

// A dot_general whose right side is known: rows times a matrix.
struct KnownDot {
  Run rows;
  Matrix matrix;
  Tensor weights;

  PackedMatrix packed(const Selection& selection) const {
    const std::string form =
        fmt::format("matrix {}x{} by {} and {}", matrix.depth, matrix.columns, matrix.row_stride, matrix.column_stride);
    return selection.packer(weights)(form, [&] { return Packs{PackedMatrix(matrix)}; })[0];
  }
  // Without their data, which a run brings.
  RowsOfA left() const {
    RowsOfA out;
    out.stride = rows.stride;
    out.count = rows.count;
    out.depth = matrix.depth;
    return out;
  }
};

// Nothing, and in `reason` why, of what is not such a dot_general.
std::optional<KnownDot> known_dot(const Selection& selection, const Node& node, std::string& reason) {
  reason = refuses_dot(selection, node);
  const auto weights = selection.known(node.operands[1]);
  if (!weights) reason = "the right side is not known before the run";
  if (!reason.empty()) return {};
  const auto sides = sides_of(selection.graph(), node);
  if (!node.attributes.ints("lhs_batch").empty() || !sides || sides->a_depth.stride != 1) {
    reason = "the left side's rows are not contiguous";
    return {};
  }
  const Run &depth = sides->b_depth, &columns = sides->columns;
  return KnownDot{sides->rows, {weights->as<float>().data(), depth.count, columns.count, depth.stride, columns.stride}, *weights};
}

// Whether sums have one order, whatever the depth: packed_matrix.h.
bool is_wide(int64_t columns) { return columns > 4 * panel_kernels().lanes; }

// A step of a recurrent layer adds the products of its input and of its state. Where both are made in the step, each sum goes on from the
// one to the other. Where the first are made before the loop, sums begin with them: so that it is the same sum, to the last bit.
struct AddedDot {
  int32_t node;
  KnownDot dot;
};
std::optional<AddedDot> added_dot(const Selection& selection, const KnownDot& first, const EpilogueMatch& match) {
  if (!match.residual || selection.users(*match.residual) != 1 || !is_wide(first.matrix.columns)) return {};
  const int32_t index = selection.graph().producer(*match.residual);
  const Node& node = selection.node(index);
  if (node.op != Op::dot_general || !selection.is_free(index)) return {};
  std::string reason;
  const auto dot = known_dot(selection, node, reason);
  if (!dot || dot->matrix.columns != first.matrix.columns || dot->rows.count != first.rows.count) return {};
  return AddedDot{index, *dot};
}
bool begins_with_residual(const Selection& selection, const KnownDot& dot, const EpilogueMatch& match) {
  return selection.options().scan != nullptr && match.residual && !match.bias && is_wide(dot.matrix.columns) &&
         selection.graph().maker(*match.residual).op != Op::dot_general;
}

// The first product of a recurrent layer is one with zeros.
bool is_zero_first(const Selection& selection, const Node& node, const KnownDot& dot) {
  return selection.begins_as_zeros(node.operands[0]) && is_finite(dot.weights);
}

Work work_of(const KnownDot& dot) {
  const auto& [rows, matrix, weights] = dot;
  return {.flops = 2 * rows.count * matrix.columns * matrix.depth,
          .bytes = 4 * (matrix.columns * (rows.count + matrix.depth) + rows.count * matrix.depth)};
}

Step two_products(const Selection& selection, int32_t index, const KnownDot& dot, const AddedDot& added, EpilogueMatch match) {
  const Node &node = selection.node(index), &other = selection.node(added.node);
  match.residual.reset();
  match.name.erase(match.name.find("+residual"), std::string_view("+residual").size());
  Step step = step_with_epilogue("two matmuls", index, {node.operands[0], other.operands[0]}, match);
  step.nodes.push_back(added.node);
  std::sort(step.nodes.begin(), step.nodes.end());
  const Work first = work_of(dot), second = work_of(added.dot);
  step.threads = selection.threads({.flops = first.flops + second.flops, .bytes = first.bytes + second.bytes});
  step.kernel.run = [left = dot.left(), packed = dot.packed(selection), more = added.dot.left(), added = added.dot.packed(selection),
                     zero_first = is_zero_first(selection, other, added.dot), columns = dot.matrix.columns,
                     epilogue = BoundEpilogue(match, dot.matrix.columns, 2), threads = step.threads](const Pointers& p) {
    RowsOfA a = left;
    AddedProduct behind_it{more, added.panels()};
    a.data = floats(p.operands[0]);
    behind_it.a.data = floats(p.operands[1]);
    matmul(a, packed.panels(), epilogue(p), floats(p.results[0]), columns, threads, p.turn % 2 != 0,
           zero_first && p.turn == 0 ? nullptr : &behind_it);
  };
  return step;
}

}  // namespace

std::optional<Step> dense_matmul(const Selection& selection, int32_t index, std::string& reason) {
  const Node& node = selection.node(index);
  if (node.op != Op::dot_general) return {};
  const auto dot = known_dot(selection, node, reason);
  if (!dot) return {};
  const Run rows = dot->rows;
  const int64_t columns = dot->matrix.columns;
  EpilogueMatch match = match_epilogue(selection, node.results[0], columns);
  if (const auto added = added_dot(selection, *dot, match)) return two_products(selection, index, *dot, *added, std::move(match));
  match.epilogue.residual_first = begins_with_residual(selection, *dot, match);
  Step step = step_with_epilogue("matmul", index, {node.operands[0]}, match);
  step.threads = selection.threads(work_of(*dot));
  if (columns == 1) {
    const PaddedColumns column(dot->matrix.data, dot->matrix.depth, dot->matrix.row_stride);
    step.kernel.run = [column, rows, epilogue = BoundEpilogue(match, 1), threads = step.threads](const Pointers& p) {
      row_dots(rows.count, floats(p.operands[0]), rows.stride, column, epilogue(p), floats(p.results[0]), threads);
    };
    return step;
  }
  const PackedMatrix packed = dot->packed(selection);
  Panels nothing = packed.panels();
  nothing.depth = 0;
  step.kernel.run = [packed, nothing, zero_first = is_zero_first(selection, node, *dot), rows, columns,
                     epilogue = BoundEpilogue(match, columns), threads = step.threads](const Pointers& p) {
    matmul(rows.count, floats(p.operands[0]), rows.stride, zero_first && p.turn == 0 ? nothing : packed.panels(), epilogue(p),
           floats(p.results[0]), columns, threads, p.turn % 2 != 0);
  };
  return step;
}

namespace {

// The products of a dot_general over its last batch axis; for the others there is a list of offsets, in floats.
struct Products {
  BatchedMatmul product;
  struct Offset {
    int64_t a, b, c;
  };
  std::vector<Offset> offsets{{0, 0, 0}};
  ValueId left;  // what is read: operand 0, or what that is turned over from
};

Products products_of(const Selection& selection, const Node& node, const Sides& sides) {
  const Shape &a = selection.type(node.operands[0]).shape, &b = selection.type(node.operands[1]).shape;
  const Ints &a_batch = node.attributes.ints("lhs_batch"), &b_batch = node.attributes.ints("rhs_batch");
  const Ints a_strides = a.strides(), b_strides = b.strides();
  const int64_t rows = sides.rows.count, columns = sides.columns.count, size = rows * columns;
  Products out{{1, rows, sides.a_depth.count, columns, sides.rows.stride, 0, sides.b_depth.stride, sides.columns.stride, 0, columns, size},
               {{0, 0, 0}},
               node.operands[0]};
  for (size_t i = 0; i < a_batch.size(); ++i) {
    const int64_t extent = a[a_batch[i]];
    const int64_t a_step = a_strides[static_cast<size_t>(a_batch[i])], b_step = b_strides[static_cast<size_t>(b_batch[i])];
    if (i + 1 == a_batch.size()) {
      out.product.batch = extent, out.product.a_step = a_step, out.product.b_step = b_step;
      break;
    }
    std::vector<Products::Offset> more;
    for (const auto& offset : out.offsets)
      for (int64_t k = 0; k < extent; ++k) more.push_back({offset.a + k * a_step, offset.b + k * b_step, 0});
    out.offsets = std::move(more);
  }
  for (size_t i = 0; i < out.offsets.size(); ++i) out.offsets[i].c = static_cast<int64_t>(i) * out.product.batch * size;
  return out;
}

// A small left side that is a matrix turned over, as in the gradients of dense layers, is read by columns where it lies.
void read_by_columns(const Selection& selection, Products& products) {
  const Node& turned = selection.node(selection.graph().producer(products.left));
  if (turned.op != Op::transpose || products.offsets.size() != 1) return;
  const Ints& permutation = turned.attributes.ints("permutation");
  const auto rank = static_cast<int64_t>(permutation.size());
  for (int64_t axis = 0; axis < rank; ++axis)
    if (permutation[static_cast<size_t>(axis)] != (axis < rank - 2 ? axis : 2 * rank - 3 - axis)) return;
  const Shape& shape = selection.type(products.left).shape;
  BatchedMatmul by_columns = products.product;
  if (by_columns.rows != shape[rank - 2] || by_columns.depth != shape[rank - 1] || by_columns.a_stride != by_columns.depth) return;
  by_columns.a_stride = 1;
  by_columns.a_column_stride = by_columns.rows;
  if (!by_columns.is_near()) return;
  products.product = by_columns;
  products.left = turned.operands[0];
}

}  // namespace

std::optional<Step> batched_matmul(const Selection& selection, int32_t index, std::string& reason) {
  const Node& node = selection.node(index);
  if (node.op != Op::dot_general) return {};
  reason = refuses_dot(selection, node);
  if (!reason.empty()) return {};
  auto sides = sides_of(selection.graph(), node);
  if (!sides || sides->a_depth.stride != 1) {
    reason = "the sides are not evenly spaced";
    return {};
  }
  Products products = products_of(selection, node, *sides);
  BatchedMatmul& product = products.product;
  const int64_t columns = product.columns;
  const Work work{.flops = 2 * product.batch * product.rows * columns * product.depth,
                  .bytes = 4 * product.batch * product.depth * (product.rows + columns)};
  const bool one_list = products.offsets.size() == 1;
  product.bias_step = columns;
  if (auto weights = selection.known(node.operands[1]); weights && one_list) {
    EpilogueMatch match = match_epilogue(selection, node.results[0], columns, product.batch);
    Step step = step_with_epilogue("batched matmul", index, {node.operands[0]}, match);
    step.threads = selection.threads(work);
    if (columns == 1) {
      const PaddedColumns all(weights->as<float>().data(), product.depth, product.b_row_stride, product.batch, product.b_step);
      step.kernel.run = [product, all, epilogue = BoundEpilogue(match, 1), threads = step.threads](const Pointers& p) {
        row_dots(product.rows, floats(p.operands[0]), product.a_stride, product.a_step, all, epilogue(p), floats(p.results[0]), threads);
      };
      return step;
    }
    const std::string form = fmt::format("{} matrices {}x{} by {}, {} and {}", product.batch, product.depth, columns, product.b_step,
                                         product.b_row_stride, product.b_column_stride);
    const PackedMatrix packed = selection.packer(*weights)(form, [&] { return Packs{product.packed(weights->as<float>().data())}; })[0];
    step.kernel.run = [product, packed, epilogue = BoundEpilogue(match, columns), threads = step.threads](const Pointers& p) {
      product.run_packed(floats(p.operands[0]), packed, epilogue(p), floats(p.results[0]), threads, p.turn % 2 != 0);
    };
    return step;
  }
  const bool stays = selection.stays(node.operands[1]) && one_list;
  if (!stays) read_by_columns(selection, products);
  EpilogueMatch match{.nodes = {}, .result = node.results[0], .residual = {}, .bias = {}, .bias_from = {}, .epilogue = {}, .name = ""};
  if (one_list && !product.is_tiny()) match = match_epilogue(selection, node.results[0], columns, product.batch, BiasOf::anything);
  Step step = step_with_epilogue("batched matmul", index, {products.left, node.operands[1]}, match);
  const int threads = step.threads = selection.threads(work);
  const BoundEpilogue epilogue(match, columns, 2);
  if (stays) {
    step.kernel.keeps_workspace = true;
    step.kernel.workspace = product.packed_size() * static_cast<int64_t>(sizeof(float));
    step.kernel.run = [product, epilogue, threads](const Pointers& p) {
      if (p.turn == 0) product.pack(floats(p.operands[1]), floats(p.workspace));
      product.run_packed(floats(p.operands[0]), floats(p.workspace), epilogue(p), floats(p.results[0]), threads);
    };
    return step;
  }
  step.kernel.workspace = product.workspace(threads) * static_cast<int64_t>(sizeof(float));
  step.kernel.run = [products, epilogue, threads](const Pointers& p) {
    for (const auto& offset : products.offsets)
      products.product.run(floats(p.operands[0]) + offset.a, floats(p.operands[1]) + offset.b, epilogue(p), floats(p.results[0]) + offset.c,
                           floats(p.workspace), threads);
  };
  return step;
}

}  // namespace tutti::cpu
