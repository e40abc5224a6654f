// Rows of a table by their numbers, along its first axis or the one behind that of stacked tables: a gather, as an Embedding does, and the
// scatter that adds to them, its gradient. The reference kernels take any block of any array, element by element and on one thread.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tutti/device/bytes.h"
#include "tutti/device/cpu/loops/candidates.h"
#include "tutti/device/cpu/team.h"
#include "tutti/device/reference/integers.h"

namespace tutti::cpu {

namespace {

// table: [tables, rows, width]; indices: [tables, count], each of a row of its own table; blocks: [tables, count, width].
struct TableRows {
  int64_t tables, rows, count, width;
  DType index;

  int64_t indices() const { return tables * count; }
};

// Whether the axes are first, first + 1, ...
bool follow(const Ints& axes, int64_t first) {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != first + static_cast<int64_t>(i)) return false;
  return true;
}

struct RowAxes {
  const Ints &row_axes, &picked, &batching, &index_batching, &map;
  int64_t vector;
};

// Nothing where blocks are no whole rows, one an index.
std::optional<TableRows> table_rows(const Type& table, const Type& indices, const RowAxes& axes) {
  const auto stacked = static_cast<int64_t>(axes.batching.size());
  if (stacked > 1 || axes.batching != axes.index_batching || (stacked == 1 && axes.batching[0] != 0)) return {};
  if (axes.picked != Ints{stacked} || axes.map != Ints{stacked} || table.shape.elements() == 0) return {};
  const int64_t rank = indices.shape.rank(), behind = rank - axes.vector;  // of the vector's axis, which has one element or is not there
  if (behind > 1 || (behind == 1 && indices.shape[axes.vector] != 1) || axes.vector < stacked) return {};
  if (!follow(axes.row_axes, axes.vector)) return {};
  const int64_t tables = stacked == 1 ? table.shape[0] : 1, rows = table.shape[stacked];
  return TableRows{tables, rows, indices.shape.elements() / tables, table.shape.elements() / (tables * rows), indices.dtype};
}

// body(place, row) for some of the indices; a row is any number.
template <class Body>
void each_index(DType dtype, const std::byte* indices, int64_t begin, int64_t end, const Body& body) {
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = begin; i < end; ++i) {
      T value;
      std::memcpy(&value, indices + i * static_cast<int64_t>(sizeof value), sizeof value);
      body(i, reference::as_index(value));
    }
  });
}

// select(inside, gathered, number) behind a gather, where `inside` is one truth an index: what take() makes of indices beyond the end.
struct Outside {
  int32_t select;
  ValueId inside;
  float number;
};
std::optional<Outside> find_outside(const Selection& selection, const Node& gather, const TableRows& rows) {
  const ValueId gathered = gather.results[0];
  const int32_t user = selection.type(gathered).dtype == DType::f32 ? selection.single_user(gathered) : -1;
  if (user < 0 || selection.node(user).op != Op::select || selection.node(user).operands[1] != gathered) return {};
  const Node& select = selection.node(user);
  const auto number = selection.number(select.operands[2]);
  const Node& spread = selection.node(selection.graph().producer(select.operands[0]));
  if (!number || spread.op != Op::broadcast_in_dim) return {};
  const Shape &inside = selection.type(spread.operands[0]).shape, &all = selection.type(gathered).shape;
  if (inside.elements() != rows.indices() || !follow(spread.attributes.ints("dimensions"), 0)) return {};
  for (int64_t axis = 0; axis < inside.rank(); ++axis)
    if (inside[axis] != all[axis]) return {};
  return Outside{user, spread.operands[0], static_cast<float>(*number)};
}

std::optional<Step> gather_rows(const Selection& selection, int32_t index) {
  const Node& node = selection.node(index);
  const Attributes& a = node.attributes;
  const Type& table = selection.type(node.operands[0]);
  const auto rows = table_rows(table, selection.type(node.operands[1]),
                               {a.ints("offset_dims"), a.ints("collapsed_slice_dims"), a.ints("operand_batching_dims"),
                                a.ints("start_indices_batching_dims"), a.ints("start_index_map"), a.integer("index_vector_dim")});
  if (!rows) return {};
  const Ints& sizes = a.ints("slice_sizes");
  for (int64_t axis = table.shape.rank() - 1; axis > a.ints("collapsed_slice_dims")[0]; --axis)
    if (sizes[static_cast<size_t>(axis)] != table.shape[axis]) return {};
  Step step = step_of(selection.graph(), index, "gather rows");
  step.threads = selection.threads({.bytes = 2 * selection.type(node.results[0]).bytes()});
  const auto outside = find_outside(selection, node, *rows);
  if (outside) {
    step.name += "+select";
    step.nodes.push_back(outside->select);
    step.operands.push_back(outside->inside);
    step.results = selection.node(outside->select).results;
  }
  step.kernel.run = [rows = *rows, size = rows->width * byte_size(table.dtype), number = outside ? outside->number : 0.0f,
                     is_masked = outside.has_value(), threads = step.threads](const Pointers& p) {
    const auto copy = [&](int64_t i, int64_t row) {
      std::byte* const to = p.results[0] + i * size;
      if (is_masked && p.operands[2][i] == std::byte{0}) {
        std::fill_n(floats(to), rows.width, number);
      } else {
        const int64_t place = i / rows.count * rows.rows + std::clamp<int64_t>(row, 0, rows.rows - 1);
        std::memcpy(to, p.operands[0] + place * size, static_cast<size_t>(size));
      }
    };
    share(rows.indices(), threads, [&](int64_t begin, int64_t end) { each_index(rows.index, p.operands[1], begin, end, copy); });
  };
  return step;
}

// Threads divide the table, and each looks at all indices: a row's sums are made in the order of these.
std::optional<Step> scatter_rows(const Selection& selection, int32_t index) {
  const Node& node = selection.node(index);
  const Attributes& a = node.attributes;
  const Type &table = selection.type(node.operands[0]), &indices = selection.type(node.operands[1]);
  if (table.dtype != DType::f32 || a.text("kind") != "add") return {};
  const auto rows =
      table_rows(table, indices,
                 {a.ints("update_window_dims"), a.ints("inserted_window_dims"), a.ints("input_batching_dims"),
                  a.ints("scatter_indices_batching_dims"), a.ints("scatter_dims_to_operand_dims"), a.integer("index_vector_dim")});
  const Type& updates = selection.type(node.operands[2]);
  if (!rows || updates.shape.elements() != rows->indices() * rows->width) return {};
  Step step = step_of(selection.graph(), index, "scatter rows");
  step.threads = selection.threads({.bytes = 2 * table.bytes() + updates.bytes()});
  const auto number = selection.number(node.operands[0]);
  const bool from_zero = number && *number == 0 && !std::signbit(*number);
  if (from_zero)
    step.operands.erase(step.operands.begin());
  else
    step.kernel.over = {{0, 0}};
  step.kernel.run = [rows = *rows, from_zero, threads = step.threads](const Pointers& p) {
    const std::byte* const* const operands = from_zero ? p.operands : p.operands + 1;
    const float* const added = floats(operands[1]);
    float* const sums = floats(p.results[0]);
    share(rows.tables * rows.rows, threads, threads, [&](int64_t begin, int64_t end, int) {
      if (from_zero)
        std::fill(sums + begin * rows.width, sums + end * rows.width, 0.0f);
      else if (const float* const before = floats(p.operands[0]); before != sums)
        std::copy(before + begin * rows.width, before + end * rows.width, sums + begin * rows.width);
      const int64_t first = begin / rows.rows * rows.count, last = ((end - 1) / rows.rows + 1) * rows.count;
      each_index(rows.index, operands[0], first, last, [&](int64_t i, int64_t row) {
        const int64_t place = i / rows.count * rows.rows + row;
        if (row < 0 || row >= rows.rows || place < begin || place >= end) return;
        const float* const from = added + i * rows.width;
        float* const to = sums + place * rows.width;
        for (int64_t k = 0; k < rows.width; ++k) to[k] += from[k];
      });
    });
  };
  return step;
}

}  // namespace

std::optional<Step> match_table_rows(const Selection& selection, int32_t index, std::string& reason) {
  const Op op = selection.node(index).op;
  if (op != Op::gather && op != Op::scatter) return {};
  auto step = op == Op::gather ? gather_rows(selection, index) : scatter_rows(selection, index);
  if (!step) reason = op == Op::gather ? "no whole rows of a table" : "no sums of f32 in whole rows of a table";
  return step;
}

}  // namespace tutti::cpu
