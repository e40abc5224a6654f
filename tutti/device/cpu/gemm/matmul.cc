#include "tutti/device/cpu/gemm/matmul.h"

#include <algorithm>
#include <optional>

#include "tutti/device/cpu/gemm/near_kernel.h"
#include "tutti/device/cpu/gemm/row_dots.h"
#include "tutti/device/cpu/gemm/tiny_kernel.h"
#include "tutti/device/cpu/team.h"
#include "tutti/device/reference/strided_copy.h"

namespace tutti::cpu {
namespace {

// Rows of A, in floats, that stay in the second-level cache while the panels pass by.
constexpr int64_t kRowsBlock = int64_t{48} * 1024;
constexpr int64_t kFewRows = 12;                       // as kManyRows, where B is near
constexpr int64_t kRowsOfTiles = 8;                    // whole tiles of every target's kernels
constexpr int64_t kLeastOfPiece = int64_t{16} * 1024;  // products
constexpr int64_t kNearMatrix = int64_t{64} * 1024;    // floats

// What all kernels are told of a result, from a column of B on.
PanelCall call_of(const Panels& b, int64_t column, const Epilogue& epilogue, float* c, int64_t c_stride) {
  PanelCall call;
  call.columns = b.columns - column;
  call.c = c + column;
  call.c_stride = c_stride;
  call.bias = epilogue.bias ? epilogue.bias + column : nullptr;
  call.epilogue = &epilogue;
  call.residual = epilogue.residual ? epilogue.residual + column : nullptr;
  call.residual_stride = epilogue.residual_stride;
  call.residual_first = call.residual && epilogue.residual_first;
  return call;
}

// All rows times one panel, the depth block by block.
class PanelBlocks {
 public:
  PanelBlocks(const Panels& b, int64_t panel, const Epilogue& epilogue, float* c, int64_t c_stride)
      : run_(b.kernels->rows[b.vectors(panel)]),
        run_two_(b.kernels->two_products[b.vectors(panel)]),
        width_(b.width(panel)),
        most_(b.kernels->depth[b.vectors(panel)]),
        is_last_(panel + 1 == b.size()),
        epilogue_(epilogue),
        call_(call_of(b, b.column(panel), epilogue, c, c_stride)),
        residual_(call_.residual) {
    call_.in_pairs = b.in_pairs_at(panel);
  }

  // Two products at once, where both stay in the first-level cache.
  bool run_both(const RowsOfA& a, const float* b, const RowsOfA& more, const float* more_b) {
    if (depth_of(a) + depth_of(more) > most_) return false;
    call_.part[0] = part_of(a, b, is_last_);
    call_.part[1] = part_of(more, more_b, is_last_);
    run_two_(call_);
    return true;
  }

  // Adds a product; the epilogue is for the `final` one.
  void run(const RowsOfA& a, const float* b, bool final) {
    RowsOfA part = a;
    int64_t tap = 0, begin = 0;
    do {
      part.tap_offsets = a.tap_offsets ? a.tap_offsets + tap : nullptr;
      part.data = a.data + begin;
      if (a.depth <= most_) {  // whole taps
        part.taps = std::min(a.taps - tap, std::max<int64_t>(1, most_ / std::max<int64_t>(1, a.depth)));
        tap += part.taps;
      } else {  // a part of one
        part.taps = 1;
        const int64_t left = a.depth - begin;
        part.depth = left >= 2 * most_ ? most_ : left > most_ ? (left + 3) / 4 * 2 : left;  // even, but for the last
        begin += part.depth;
        if (begin == a.depth) {
          begin = 0;
          ++tap;
        }
      }
      const bool ends = tap >= a.taps;
      call_.part[0] = part_of(part, b, ends && is_last_);
      call_.epilogue = ends && final ? &epilogue_ : nullptr;
      call_.residual = call_.residual_first || (ends && final && !epilogue_.residual_first) ? residual_ : nullptr;
      run_(call_);
      b += depth_of(part) * width_;
      call_.accumulate = true;  // what has begun with the residual goes on from there
      call_.residual_first = false;
    } while (tap < a.taps);
  }

 private:
  static int64_t depth_of(const RowsOfA& a) { return a.taps * a.depth; }
  PanelPart part_of(const RowsOfA& a, const float* b, bool nothing_behind) const {
    return {&a, b, 0, nothing_behind ? 0 : depth_of(a) * width_};
  }

  void (*run_)(const PanelCall&);
  void (*run_two_)(const PanelCall&);
  int64_t width_, most_;
  bool is_last_;
  const Epilogue& epilogue_;
  PanelCall call_;  // changed from block to block, and never copied: see PanelPart
  const float* residual_;
};

void multiply_panel(const RowsOfA& a, const Panels& b, const AddedProduct* added, int64_t panel, const Epilogue& epilogue, float* c,
                    int64_t c_stride) {
  PanelBlocks blocks(b, panel, epilogue, c, c_stride);
  if (added && blocks.run_both(a, b.begin(panel), added->a, added->b.begin(panel))) return;
  blocks.run(a, b.begin(panel), !added);
  if (added) blocks.run(added->a, added->b.begin(panel), true);
}

// One row: no blocks, panels side by side.
void multiply_one_row(const RowsOfA& a, const Panels& b, const AddedProduct* added, int64_t first, int64_t last, const Epilogue& epilogue,
                      float* c, bool backwards) {
  if (first == last) return;
  PanelCall call = call_of(b, b.column(first), epilogue, c, 0);
  const int64_t threes = std::clamp<int64_t>(b.count[3] - first, 0, last - first);
  const auto run = [&](const RowsOfA& row, const Panels& panels) {
    call.part[0] = {&row, panels.begin(first), panels.depth, 0};
    b.count[1] > 0 ? b.kernels->rows[1](call) : b.kernels->one_row(call, threes, last - first - threes, backwards);
  };
  if (added) {
    const auto [final, residual] = std::pair(call.epilogue, call.residual);
    if (!call.residual_first) call.residual = nullptr;
    call.epilogue = nullptr;
    run(a, b);
    call.epilogue = final;
    call.residual = call.residual_first ? nullptr : residual;
    call.residual_first = false;
    call.accumulate = true;
    return run(added->a, added->b);
  }
  run(a, b);
}

// A narrow matrix, which is one panel.
void multiply_narrow(const RowsOfA& a, const Panels& b, const Epilogue& epilogue, float* c, int64_t c_stride) {
  PanelCall call = call_of(b, 0, epilogue, c, c_stride);
  call.part[0] = {&a, b.begin(0), b.depth, 0};
  b.kernels->narrow[b.vectors(0)](call);
}

// Few rows are divided by columns. Panels are few then and not all of one width, so that some panel's rows are divided as well: `count`
// units of one vector and some rows, panel by panel.
class DividedPanels {
 public:
  DividedPanels(const RowsOfA& a, const Panels& b) : a_(a), b_(b), blocks_((a.count + kRows - 1) / kRows) {}

  int64_t count() const { return start(b_.size()); }

  // body(rows, first panel, last panel) for the units of a piece.
  template <class Body>
  void each(int64_t begin, int64_t end, const Body& body) const {
    int64_t panel = 0;
    while (start(panel + 1) <= begin) ++panel;
    for (int64_t last = panel; panel < b_.size() && start(panel) < end; panel = last) {
      const int64_t from = row(panel, begin), to = row(panel, end);
      last = panel + 1;
      if (from == 0 && to == a_.count)  // whole panels, as many as there are
        while (last < b_.size() && start(last + 1) <= end) ++last;
      if (from < to) body(from, to, panel, last);
    }
  }

 private:
  static constexpr int64_t kRows = 8;  // of a block

  // Vectors of all panels before this one, times the blocks of rows.
  int64_t start(int64_t panel) const {
    const int64_t threes = std::min(panel, b_.count[3]), twos = std::min(panel - threes, b_.count[2]);
    return blocks_ * (3 * threes + 2 * twos + (panel - threes - twos));
  }
  // The first row of a panel from this unit on.
  int64_t row(int64_t panel, int64_t unit) const {
    return std::clamp<int64_t>((unit - start(panel)) / b_.vectors(panel), 0, blocks_) * a_.count / blocks_;
  }

  const RowsOfA& a_;
  const Panels& b_;
  int64_t blocks_;
};

constexpr int64_t kTurnedFloats = 2048;             // of a result that is made turned over
constexpr int64_t kNearBytes = int64_t{16} * 1024;  // that B may spread over: half of a first-level cache

std::optional<AddedProduct> part_of(const AddedProduct* added, int64_t row, int64_t count) {
  return added ? std::optional(AddedProduct{added->a.part(row, count), added->b}) : std::nullopt;
}

bool is_plain(const Epilogue& epilogue) {
  return epilogue.bias == nullptr && epilogue.residual == nullptr && epilogue.activation == Activation::none;
}

}  // namespace

void multiply_panels(const RowsOfA& a, const Panels& b, int64_t first, int64_t last, const Epilogue& epilogue, float* c, int64_t c_stride,
                     bool backwards, const AddedProduct* added) {
  if (b.narrow) {
    multiply_narrow(a, b, epilogue, c, c_stride);
  } else if (a.count == 1 && !b.in_pairs) {
    multiply_one_row(a, b, added, first, last, epilogue, c, backwards);
  } else {
    for (int64_t panel = first; panel < last; ++panel) multiply_panel(a, b, added, panel, epilogue, c, c_stride);
  }
  if (epilogue.in_registers() || first == last) return;
  const int64_t begin = b.column(first), end = last == b.size() ? b.columns : b.column(last);
  activate(epilogue, c + begin, a.count, end - begin, c_stride);
}

void multiply_blocks(const RowsOfA& a, const Panels& b, int64_t first_panel, int64_t last_panel, const Epilogue& epilogue, float* c,
                     int64_t c_stride, bool backwards, const AddedProduct* added) {
  const int64_t block = std::max<int64_t>(24, kRowsBlock / std::max<int64_t>(1, b.depth));
  if (a.count <= block) return multiply_panels(a, b, first_panel, last_panel, epilogue, c, c_stride, backwards, added);
  for (int64_t row = 0; row < a.count; row += block) {
    const int64_t count = std::min(block, a.count - row);
    const std::optional<AddedProduct> more = part_of(added, row, count);
    multiply_panels(a.part(row, count), b, first_panel, last_panel, epilogue.from_row(row), c + row * c_stride, c_stride, backwards,
                    more ? &*more : nullptr);
  }
}

void matmul(int64_t rows, const float* a, int64_t a_stride, const Panels& b, const Epilogue& epilogue, float* c, int64_t c_stride,
            int threads, bool backwards) {
  RowsOfA all;
  all.data = a;
  all.stride = a_stride;
  all.count = rows;
  all.depth = b.depth;
  matmul(all, b, epilogue, c, c_stride, threads, backwards);
}

void matmul(const RowsOfA& all, const Panels& b, const Epilogue& epilogue, float* c, int64_t c_stride, int threads, bool backwards,
            const AddedProduct* added) {
  const int64_t rows = all.count;
  if (threads == 1) return multiply_blocks(all, b, 0, b.size(), epilogue, c, c_stride, backwards, added);
  const auto rows_of_panels = [&](int64_t first, int64_t last, int64_t first_panel, int64_t last_panel) {
    const std::optional<AddedProduct> more = part_of(added, first, last - first);
    multiply_blocks(all.part(first, last - first), b, first_panel, last_panel, epilogue.from_row(first), c + first * c_stride, c_stride,
                    backwards, more ? &*more : nullptr);
  };
  // The rows are divided, so that a thread goes on with what it has made in the kernel before; the columns only of few rows.
  const bool near = b.depth * b.columns <= kNearMatrix;
  if (rows < (near ? kFewRows : kManyRows) * threads && rows < b.columns && !b.narrow) {
    // One row is all about reading B, and a thread has what it reads always in its own cache: nobody else's pieces help.
    const int64_t pieces = rows == 1 ? threads : pieces_of(b.columns, threads, kLeastOfPiece / std::max<int64_t>(1, rows * b.depth));
    const DividedPanels divided(all, b);
    share(
        divided.count(), threads, pieces, [&](int64_t begin, int64_t end, int) { divided.each(begin, end, rows_of_panels); }, backwards);
    return;
  }
  share(
      rows, threads, pieces_of(rows, threads, near ? kFewRows : kManyRows),
      [&](int64_t first, int64_t last, int) { rows_of_panels(first, last, 0, b.size()); }, false, kRowsOfTiles);
}

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
