#include "tutti/device/cpu/gemm/matmul.h"

#include <fmt/format.h>

#include "tutti/device/cpu/candidates/contraction.h"
#include "tutti/device/cpu/candidates/match_epilogue.h"
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

}  // namespace

std::optional<Step> dense_matmul(const Selection& selection, int32_t index, std::string& reason) {
  const Node& node = selection.node(index);
  if (node.op != Op::dot_general) return {};
  reason = refuses_dot(selection, node);
  auto weights = selection.known(node.operands[1]);
  if (!weights) reason = "the right side is not known before the run";
  if (!reason.empty()) return {};
  auto sides = sides_of(selection.graph(), node);
  if (!node.attributes.ints("lhs_batch").empty() || !sides || sides->a_depth.stride != 1) {
    reason = "the left side's rows are not contiguous";
    return {};
  }
  const Run rows = sides->rows;
  const int64_t columns = sides->columns.count;
  EpilogueMatch match = match_epilogue(selection, node.results[0], columns);
  Step step = step_with_epilogue("matmul", index, node.operands[0], match);
  step.threads = selection.threads({.flops = 2 * rows.count * columns * sides->b_depth.count,
                                    .bytes = 4 * (columns * (rows.count + sides->b_depth.count) + rows.count * sides->b_depth.count)});
  if (columns == 1) {
    const PaddedColumns column(weights->as<float>().data(), sides->b_depth.count, sides->b_depth.stride);
    step.kernel.run = [column, rows, epilogue = BoundEpilogue(match, 1), threads = step.threads](const Pointers& p) {
      row_dots(rows.count, floats(p.operands[0]), rows.stride, column, epilogue(p), floats(p.results[0]), threads);
    };
    return step;
  }
  const Matrix matrix{weights->as<float>().data(), sides->b_depth.count, columns, sides->b_depth.stride, sides->columns.stride};
  const std::string form = fmt::format("matrix {}x{} by {} and {}", matrix.depth, matrix.columns, matrix.row_stride, matrix.column_stride);
  const PackedMatrix packed = selection.packer(*weights)(form, [&] { return Packs{PackedMatrix(matrix)}; })[0];
  step.kernel.run = [packed, rows, columns, epilogue = BoundEpilogue(match, columns), threads = step.threads](const Pointers& p) {
    matmul(rows.count, floats(p.operands[0]), rows.stride, packed.panels(), epilogue(p), floats(p.results[0]), columns, threads,
           p.turn % 2 != 0);
  };
  return step;
}

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
  const Shape &a = selection.type(node.operands[0]).shape, &b = selection.type(node.operands[1]).shape;
  const Ints &a_batch = node.attributes.ints("lhs_batch"), &b_batch = node.attributes.ints("rhs_batch");
  const Ints a_strides = a.strides(), b_strides = b.strides();
  const int64_t rows = sides->rows.count, columns = sides->columns.count, size = rows * columns;
  // The last batch axis is the product's own; for the others there is a list of offsets.
  BatchedMatmul product{
      1, rows, sides->a_depth.count, columns, sides->rows.stride, 0, sides->b_depth.stride, sides->columns.stride, 0, columns, size};
  struct Offset {
    int64_t a, b, c;
  };
  std::vector<Offset> offsets{{0, 0, 0}};
  for (size_t i = 0; i < a_batch.size(); ++i) {
    const int64_t extent = a[a_batch[i]];
    const int64_t a_step = a_strides[static_cast<size_t>(a_batch[i])], b_step = b_strides[static_cast<size_t>(b_batch[i])];
    if (i + 1 == a_batch.size()) {
      product.batch = extent, product.a_step = a_step, product.b_step = b_step;
      break;
    }
    std::vector<Offset> more;
    for (const Offset& offset : offsets)
      for (int64_t k = 0; k < extent; ++k) more.push_back({offset.a + k * a_step, offset.b + k * b_step, 0});
    offsets = std::move(more);
  }
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i].c = static_cast<int64_t>(i) * product.batch * size;
  const Work work{.flops = 2 * product.batch * size * product.depth, .bytes = 4 * product.batch * product.depth * (rows + columns)};
  if (auto weights = selection.known(node.operands[1]); weights && offsets.size() == 1) {
    EpilogueMatch match = match_epilogue(selection, node.results[0], columns, product.batch);
    Step step = step_with_epilogue("batched matmul", index, node.operands[0], match);
    step.threads = selection.threads(work);
    product.bias_step = columns;
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
  Step step = step_of(selection.graph(), index, "batched matmul");
  const int threads = step.threads = selection.threads(work);
  if (selection.stays(node.operands[1]) && offsets.size() == 1) {
    step.kernel.keeps_workspace = true;
    step.kernel.workspace = product.packed_size() * static_cast<int64_t>(sizeof(float));
    step.kernel.run = [product, threads](const Pointers& p) {
      if (p.turn == 0) product.pack(floats(p.operands[1]), floats(p.workspace));
      product.run_packed(floats(p.operands[0]), floats(p.workspace), Epilogue{}, floats(p.results[0]), threads);
    };
    return step;
  }
  step.kernel.workspace = product.workspace(threads) * static_cast<int64_t>(sizeof(float));
  step.kernel.run = [product, offsets, threads](const Pointers& p) {
    for (const Offset& offset : offsets)
      product.run(floats(p.operands[0]) + offset.a, floats(p.operands[1]) + offset.b, Epilogue{}, floats(p.results[0]) + offset.c,
                  floats(p.workspace), threads);
  };
  return step;
}

}  // namespace tutti::cpu
