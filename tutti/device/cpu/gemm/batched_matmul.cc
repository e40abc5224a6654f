#include "tutti/device/cpu/gemm/batched_matmul.h"

#include <algorithm>

#include "tutti/device/cpu/gemm/matmul.h"
#include "tutti/device/cpu/gemm/near_kernel.h"
#include "tutti/device/cpu/gemm/row_dots.h"
#include "tutti/device/cpu/gemm/tiny_kernel.h"
#include "tutti/device/cpu/team.h"
#include "tutti/device/reference/strided_copy.h"

namespace tutti::cpu {
namespace {

constexpr int64_t kTurnedFloats = 2048;             // of a result that is made turned over
constexpr int64_t kNearBytes = int64_t{16} * 1024;  // that B may spread over: half of a first-level cache

bool is_plain(const Epilogue& epilogue) {
  return epilogue.bias == nullptr && epilogue.residual == nullptr && epilogue.activation == Activation::none;
}

}  // namespace

int64_t BatchedMatmul::workspace(int threads) const {
  const int64_t each = is_column() ? padded_size(depth) : is_near() ? 0 : cpu::packed_size(depth, columns);
  return size_for<float>(threads, each);
}

// One row of a narrow B sums in another order: packed_matrix.h.
bool BatchedMatmul::is_near() const {
  const auto spread = [&](int64_t stride) { return depth * stride * static_cast<int64_t>(sizeof(float)) <= kNearBytes; };
  const NearKernels& kernels = near_kernels();
  return rows > 1 && b_column_stride == 1 && spread(b_row_stride) && (a_column_stride == 1 || (a_stride == 1 && spread(a_column_stride))) &&
         (kernels.part_of_vector || columns % panel_kernels().lanes == 0);
}

// The result's columns leave much of a vector empty, its rows do not.
bool BatchedMatmul::is_near_turned() const {
  const int64_t lanes = panel_kernels().lanes;
  const auto padded = [&](int64_t count) { return (count + lanes - 1) / lanes * lanes; };
  return a_stride == 1 && a_column_stride != 1 && rows * columns <= kTurnedFloats &&
         4 * padded(columns) * rows > 5 * padded(rows) * columns;
}

// The same sums, of B's columns and A's.
void BatchedMatmul::run_near_turned(int64_t i, const float* a, const float* b, float* c) const {
  float turned[kTurnedFloats];
  const BatchedMatmul other{batch, columns, depth, rows, 1, b_step, a_column_stride, 1, a_step, rows, 0, 0, b_row_stride};
  other.run_near(other.whole(i), b, a, {}, turned);
  reference::transpose_floats(turned, rows, rows, columns, c + i * c_step, c_stride);
}

void BatchedMatmul::run_near(const Part& part, const float* a, const float* b, const Epilogue& all, float* c) const {
  const int64_t i = part.product, count = part.last - part.first;
  const Epilogue epilogue = of_product(i, all).from_row(part.first);
  const NearKernels& kernels = near_kernels();
  const Panels panels = panels_at(b + i * b_step, depth, columns, LeftRows::several);
  RowsOfA all_rows{a + i * a_step + part.first * a_stride, nullptr, a_stride, count};
  all_rows.depth = depth;
  NearCall call{.panel = {}, .a_step = a_column_stride, .b_stride = b_row_stride};
  call.panel.c_stride = c_stride;
  call.panel.epilogue = &epilogue;
  call.panel.residual_stride = epilogue.residual_stride;
  c += i * c_step + part.first * c_stride;
  for (int64_t panel = 0; panel < panels.size(); ++panel) {
    const int64_t column = panels.column(panel);
    call.panel.part[0] = {&all_rows, panels.data + column, 0, 0};
    call.panel.columns = columns - column;
    call.panel.c = c + column;
    call.panel.bias = epilogue.bias ? epilogue.bias + column : nullptr;
    call.panel.residual = epilogue.residual ? epilogue.residual + column : nullptr;
    (a_column_stride == 1 ? kernels.rows : kernels.columns)[panels.vectors(panel)](call);
  }
  if (!epilogue.in_registers()) activate(epilogue, c, count, columns, c_stride);
}

void BatchedMatmul::multiply(const Part& part, const float* a, const Panels& panels, const Epilogue& all, float* c, int threads) const {
  const auto [i, first, last] = part;
  matmul(last - first, a + i * a_step + first * a_stride, a_stride, panels, of_product(i, all).from_row(first),
         c + i * c_step + first * c_stride, c_stride, threads);
}

// body(part, slot): whole products, one after the other; where they are few and threads would get more of them than others, the threads get
// as many rows instead.
template <class Body>
void BatchedMatmul::each_part(int threads, const Body& body) const {
  if (threads <= 1 || batch % threads == 0 || batch >= 4 * threads || batch * rows < kFewRows * threads)
    return team(threads, batch, [&](int64_t i, int slot) { body(whole(i), slot); });
  share(
      batch * rows, threads, pieces_of(batch * rows, threads, std::max(kFewRows, rows)),
      [&](int64_t begin, int64_t end, int slot) {
        for (int64_t i = begin / rows; i * rows < end; ++i)
          body(Part{i, std::max<int64_t>(begin - i * rows, 0), std::min(end - i * rows, rows)}, slot);
      },
      false, kRowsOfTiles);
}

// By the shape of B alone: what a row gives does not depend on how many there are.
bool BatchedMatmul::is_tiny() const {
  return columns > 0 && columns <= TinyKernels::most_columns && depth * columns <= TinyKernels::most_floats && depth > 0 && !is_column();
}

// The sums over a batch that gradients are, of few units: the whole result is a few vectors.
bool BatchedMatmul::is_tiny_by_columns() const {
  constexpr int64_t most_rows = 16;
  return a_stride == 1 && a_column_stride != 1 && columns > 0 && columns <= TinyKernels::most_columns && rows <= most_rows &&
         b_column_stride == 1 && tiny_kernels().columns[columns] != nullptr;
}

bool BatchedMatmul::is_column() const {
  constexpr int64_t vector = 16;  // of the widest; less is not worth it
  return columns == 1 && c_stride == 1 && depth >= vector && a_column_stride == 1;
}

void BatchedMatmul::run_column(const float* a, const float* b, const Epilogue& epilogue, float* c, float* workspace, int threads) const {
  const auto rows_of = [&](int64_t i, int64_t first, int64_t last, const float* column) {
    row_dots(last - first, a + i * a_step + first * a_stride, a_stride, column, depth, of_product(i, epilogue).from_row(first),
             c + i * c_step + first);
  };
  if (batch >= threads)
    return team(threads, batch, [&](int64_t i, int slot) {
      float* column = own(slot, workspace, padded_size(depth));
      pad_column(b + i * b_step, depth, b_row_stride, column);
      rows_of(i, 0, rows, column);
    });
  for (int64_t i = 0; i < batch; ++i) {
    pad_column(b + i * b_step, depth, b_row_stride, workspace);
    share(rows, threads, [&](int64_t first, int64_t last) { rows_of(i, first, last, workspace); });
  }
}

void BatchedMatmul::run_tiny(const float* a, const float* b, float* c, int threads) const {
  const bool dense = b_column_stride == 1 && b_row_stride == columns;
  team(threads, batch, [&](int64_t i, int) {
    const float* from = b + i * b_step;
    float copy[TinyKernels::most_floats];
    if (!dense)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t n = 0; n < columns; ++n) copy[k * columns + n] = from[k * b_row_stride + n * b_column_stride];
    tiny_kernels().rows[columns]({rows, depth, a + i * a_step, a_stride, dense ? from : copy, columns, c + i * c_step, c_stride});
  });
}

void BatchedMatmul::run_tiny_by_columns(const float* a, const float* b, float* c, int threads) const {
  team(threads, batch, [&](int64_t i, int) {
    tiny_kernels().columns[columns]({rows, depth, a + i * a_step, a_column_stride, b + i * b_step, b_row_stride, c + i * c_step, c_stride});
  });
}

void BatchedMatmul::run(const float* a, const float* b, const Epilogue& epilogue, float* c, float* workspace, int threads) const {
  if (is_column()) return run_column(a, b, epilogue, c, workspace, threads);
  if (is_tiny() && a_column_stride == 1 && is_plain(epilogue)) return run_tiny(a, b, c, threads);
  if (is_tiny_by_columns() && is_plain(epilogue)) return run_tiny_by_columns(a, b, c, threads);
  if (batch >= threads && is_near() && is_near_turned() && is_plain(epilogue))
    return team(threads, batch, [&](int64_t i, int) { run_near_turned(i, a, b, c); });
  if (is_near()) return each_part(threads, [&](const Part& part, int) { run_near(part, a, b, epilogue, c); });
  const int64_t size = cpu::packed_size(depth, columns);
  const Panels all = panels_at(workspace, depth, columns, left());
  if (batch < threads) {  // each product between the threads
    for (int64_t i = 0; i < batch; ++i) {
      cpu::pack(matrix(b, i), all, workspace);
      multiply(whole(i), a, all, epilogue, c, threads);
    }
    return;
  }
  each_part(threads, [&](const Part& part, int slot) {
    Panels panels = all;
    float* place = own(slot, workspace, size);
    panels.data = place;
    cpu::pack(matrix(b, part.product), panels, place);
    multiply(part, a, panels, epilogue, c);
  });
}

int64_t BatchedMatmul::packed_size() const { return batch * cpu::packed_size(depth, columns); }

void BatchedMatmul::pack(const float* b, float* packed) const {
  for (int64_t i = 0; i < batch; ++i, packed += cpu::packed_size(depth, columns)) cpu::pack(matrix(b, i), left(), packed);
}

void BatchedMatmul::run_packed(const float* a, const float* packed, const Epilogue& epilogue, float* c, int threads) const {
  run_panels(a, panels_at(packed, depth, columns, left()), epilogue, c, threads, false);
}

void BatchedMatmul::run_panels(const float* a, const Panels& first, const Epilogue& epilogue, float* c, int threads, bool backwards) const {
  const int64_t size = cpu::packed_size(depth, columns);
  if (batch < threads) {  // each product between the threads
    Panels panels = first;
    for (int64_t i = 0; i < batch; ++i, panels.data += size) multiply(whole(i), a, panels, epilogue, c, threads);
    return;
  }
  share(
      batch, threads,
      [&](int64_t begin, int64_t end) {
        Panels panels = first;
        for (int64_t n = 0; n < end - begin; ++n) {
          const int64_t i = backwards ? end - 1 - n : begin + n;
          panels.data = first.data + i * size;
          multiply(whole(i), a, panels, epilogue, c);
        }
      },
      backwards);
}

}  // namespace tutti::cpu
