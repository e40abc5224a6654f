#include "tutti/device/cpu/gemm/matmul.h"

#include <algorithm>

#include "tutti/device/cpu/candidates/contraction.h"
#include "tutti/device/cpu/candidates/match_epilogue.h"

namespace tutti::cpu {

namespace {

// Some axes of a row-major value as one: how many elements, and how far apart. Nothing if they are not evenly spaced.
struct Run {
  int64_t count = 1, stride = 1;
};
std::optional<Run> as_one(const Shape& shape, const Ints& axes) {
  const Ints strides = shape.strides();
  Run run;
  bool first = true;
  for (size_t i = axes.size(); i-- > 0;) {  // from the innermost
    const int64_t extent = shape[axes[i]], stride = strides[static_cast<size_t>(axes[i])];
    if (extent == 1) continue;
    if (first) {
      run = {extent, stride};
      first = false;
    } else if (stride == run.stride * run.count) {
      run.count *= extent;
    } else {
      return {};
    }
  }
  return run;
}

Ints free_axes(const Shape& shape, const Ints& batch, const Ints& contracting) {
  Ints out;
  for (int64_t axis = 0; axis < shape.rank(); ++axis)
    if (std::find(batch.begin(), batch.end(), axis) == batch.end() &&
        std::find(contracting.begin(), contracting.end(), axis) == contracting.end())
      out.push_back(axis);
  return out;
}

// The two sides of a dot_general as strided matrices: A [rows, depth] and B [depth, columns] for each place of the batch axes.
struct Sides {
  Run rows, a_depth, b_depth, columns;
};
std::optional<Sides> sides_of(const Graph& graph, const Node& node) {
  const Shape &a = operand_type(graph, node, 0).shape, &b = operand_type(graph, node, 1).shape;
  const auto& at = node.attributes;
  auto rows = as_one(a, free_axes(a, at.ints("lhs_batch"), at.ints("lhs_contracting")));
  auto columns = as_one(b, free_axes(b, at.ints("rhs_batch"), at.ints("rhs_contracting")));
  auto a_depth = as_one(a, at.ints("lhs_contracting")), b_depth = as_one(b, at.ints("rhs_contracting"));
  if (!rows || !columns || !a_depth || !b_depth) return {};
  return Sides{*rows, *a_depth, *b_depth, *columns};
}

bool is_float_dot(const Selection& selection, const Node& node) {
  return node.op == Op::dot_general && selection.type(node.results[0]).dtype == DType::f32 &&
         selection.type(node.operands[0]).dtype == DType::f32 && selection.type(node.operands[1]).dtype == DType::f32;
}

bool has_nothing_to_do(const Selection& selection, const Node& node) {
  return selection.type(node.results[0]).shape.elements() == 0 || selection.type(node.operands[0]).shape.elements() == 0;
}

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

}  // namespace

std::optional<Step> dense_matmul(const Selection& selection, int32_t index, std::string& reason) {
  const Node& node = selection.node(index);
  if (!is_float_dot(selection, node) || has_nothing_to_do(selection, node)) return {};
  auto weights = selection.known(node.operands[1]);
  if (!weights) return {};
  auto sides = sides_of(selection.graph(), node);
  if (!node.attributes.ints("lhs_batch").empty() || !sides || sides->a_depth.stride != 1) {
    reason = "the left side's rows are not contiguous";
    return {};
  }
  const Run rows = sides->rows;
  const int64_t columns = sides->columns.count;
  EpilogueMatch match = match_epilogue(selection, node.results[0], columns);
  Step step{"matmul" + match.name, {index}, {node.operands[0]}, {match.result}};
  step.nodes.insert(step.nodes.end(), match.nodes.begin(), match.nodes.end());
  if (match.residual) step.operands.push_back(*match.residual);
  PackedMatrix packed({weights->as<float>().data(), sides->b_depth.count, columns, sides->b_depth.stride, sides->columns.stride});
  step.kernel.run = [packed, rows, columns, epilogue = match.epilogue, bias = match.bias, residual = match.residual.has_value(),
                     threads = selection.threads(2 * rows.count * columns * sides->b_depth.count)](const Pointers& p) {
    Epilogue now = epilogue;
    if (residual) now.residual = floats(p.operands[1]), now.residual_stride = columns;
    matmul(rows.count, floats(p.operands[0]), rows.stride, packed.panels(), now, floats(p.results[0]), columns, threads);
  };
  return step;
}

std::optional<Step> batched_matmul(const Selection& selection, int32_t index, std::string& reason) {
  const Node& node = selection.node(index);
  if (!is_float_dot(selection, node) || has_nothing_to_do(selection, node)) return {};
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
  Step step = step_of(selection.graph(), index, "batched matmul");
  const int threads = selection.threads(2 * product.batch * size * product.depth);
  step.kernel.workspace = product.workspace(threads) * static_cast<int64_t>(sizeof(float));
  step.kernel.run = [product, offsets, threads](const Pointers& p) {
    for (const Offset& offset : offsets)
      product.run(floats(p.operands[0]) + offset.a, floats(p.operands[1]) + offset.b, Epilogue{}, floats(p.results[0]) + offset.c,
                  floats(p.workspace), threads);
  };
  return step;
}

}  // namespace tutti::cpu
