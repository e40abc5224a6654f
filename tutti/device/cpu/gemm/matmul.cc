#include "tutti/device/cpu/gemm/matmul.h"

#include <algorithm>
#include <optional>

#include "tutti/device/cpu/team.h"

namespace tutti::cpu {
namespace {

// Rows of A, in floats, that stay in the second-level cache while the panels pass by.
constexpr int64_t kRowsBlock = int64_t{48} * 1024;
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
        is_last_panel_(panel + 1 == b.size()),
        epilogue_(epilogue),
        call_(call_of(b, b.column(panel), epilogue, c, c_stride)),
        residual_(call_.residual) {
    call_.in_pairs = b.in_pairs_at(panel);
  }

  // Two products at once, where both stay in the first-level cache.
  bool run_both(const RowsOfA& a, const float* b, const RowsOfA& more, const float* more_b) {
    if (depth_of(a) + depth_of(more) > most_) return false;
    call_.part[0] = part_of(a, b, is_last_panel_);
    call_.part[1] = part_of(more, more_b, is_last_panel_);
    run_two_(call_);
    return true;
  }

  // Adds a product; behind the last one comes the epilogue.
  void run(const RowsOfA& a, const float* b, bool is_last_product) {
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
      call_.part[0] = part_of(part, b, ends && is_last_panel_);
      call_.epilogue = ends && is_last_product ? &epilogue_ : nullptr;
      call_.residual = call_.residual_first || (ends && is_last_product && !epilogue_.residual_first) ? residual_ : nullptr;
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
  bool is_last_panel_;
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
    const auto [whole, residual] = std::pair(call.epilogue, call.residual);
    if (!call.residual_first) call.residual = nullptr;
    call.epilogue = nullptr;
    run(a, b);
    call.epilogue = whole;
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

std::optional<AddedProduct> part_of(const AddedProduct* added, int64_t row, int64_t count) {
  return added ? std::optional(AddedProduct{added->a.part(row, count), added->b}) : std::nullopt;
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

}  // namespace tutti::cpu
