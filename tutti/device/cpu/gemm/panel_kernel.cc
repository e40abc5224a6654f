#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/gemm/panel_kernel.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <unistd.h>

#include <algorithm>

#include "tutti/device/cpu/gemm/edge_inl.h"
#include "tutti/device/cpu/gemm/panel_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

// What a tile fetches on the way, a few lines of the cache at a time.
template <int Parts>
struct Ahead {
  const float* data[Parts];
  int64_t lines = 0;  // at every kUnroll steps
};
constexpr int64_t kLine = 16;  // floats

// Where some rows of A start in a run of them, each in a register. An array of them that the caller makes is stored as vectors, and half of
// such a vector can be loaded one by one only when it has reached the cache, behind all results of the tile before.
template <int Rows>
HWY_INLINE void find_rows(const RowsOfA& a, int64_t first, int64_t tap, const float* (&row)[Rows]) {
  const float* const data = a.data + (a.tap_offsets ? a.tap_offsets[tap] : 0);
  if (a.offsets) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) row[i] = data + a.offsets[first + i];
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) row[i] = data + (first + i) * a.stride;
  }
}

// What the last vector of a panel is: as the others, half a one, or one that holds two rows.
enum class Last { whole, half, pairs };

// One tile: Rows rows times a panel of Vectors vectors; or of two products that are summed up.
template <int Rows, int Vectors, Last kLast, int Parts>
struct Tile {
  static constexpr int kUnroll = 8, kWhole = Vectors - (kLast == Last::whole ? 0 : 1);
  static constexpr int kWidth = kLast == Last::pairs ? Vectors * kLanes - kLanes / 2 : Vectors * kLanes;  // floats of a row of B
  static constexpr int kStep = kLast == Last::pairs ? 2 : 1;                                              // rows of B at once

  static HWY_NOINLINE void run(const PanelCall& call, int64_t first_row, float* c, const float* residual, Ahead<Parts> ahead) {
    if (residual && !call.residual_first) {  // perhaps from far away, and needed in the end
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) __builtin_prefetch(residual + i * call.residual_stride + v * kLanes, 0, 3);
      }
    }
    Sums sums;
    sums.begin(call, c, residual);
    for (int part = 0; part < Parts; ++part) {
      const RowsOfA* const a = call.part[part].a;
      const float *b = call.part[part].b, *fetched = ahead.data[part];
      const int64_t depth = a->depth;
      for (int64_t tap = 0; tap < a->taps; ++tap) {
        const float* row[Rows];
        find_rows(*a, first_row, tap, row);
        int64_t k = 0;
        for (; k + kUnroll <= depth; k += kUnroll) {
#pragma GCC unroll 8
          for (int u = 0; u < kUnroll; u += kStep) {
            sums.add(row, k + u, b + u * kWidth);
            asm volatile("" ::: "memory");  // loads stay with their step: hoisted, they would push sums out of registers
          }
          b += kUnroll * kWidth;
          for (int64_t line = 0; line < ahead.lines; ++line, fetched += kLine) __builtin_prefetch(fetched, 0, 2);
        }
        for (; k < depth; k += kStep, b += kStep * kWidth) sums.add(row, k, b);
      }
    }
    sums.end(call, c, residual);
  }

 private:
  struct Sums {
    Vector whole[Rows][kWhole == 0 ? 1 : kWhole];
    hn::Vec<HalfTag> half[Rows][1];
    Vector pairs[Rows];

    HWY_INLINE void begin(const PanelCall& call, const float* c, const float* residual) {
      if constexpr (kLast != Last::whole) {
        if constexpr (kWhole > 0) Edge<Rows, kWhole>::template begin<true>(call, c, residual, whole);
        Edge<Rows, 1, HalfTag>::template begin<false>(call, c, residual, half, kWhole * kLanes);
        if constexpr (kLast == Last::pairs) {
#pragma GCC unroll 16
          for (int i = 0; i < Rows; ++i) pairs[i] = spread(half[i][0]);
        }
      } else if (call.columns >= Vectors * kLanes) {
        Edge<Rows, kWhole>::template begin<true>(call, c, residual, whole);
      } else {
        Edge<Rows, kWhole>::template begin<false>(call, c, residual, whole);
      }
    }
    HWY_INLINE void add(const float* const (&row)[Rows], int64_t k, const float* b) {
      if constexpr (kLast == Last::pairs) {
        add_row(row, k, b);
        add_row(row, k + 1, b + kWhole * kLanes);
        const Vector both = hn::Load(Tag(), b + 2 * kWhole * kLanes);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) add_product(load_pair(row[i] + k), both, pairs[i]);
      } else {
        add_row(row, k, b);
      }
    }
    HWY_INLINE void add_row(const float* const (&row)[Rows], int64_t k, const float* b) {
      if constexpr (kLast == Last::pairs && kWhole == 0) return;
      Vector columns[kWhole == 0 ? 1 : kWhole];
#pragma GCC unroll 16
      for (int v = 0; v < kWhole; ++v) columns[v] = hn::Load(Tag(), b + v * kLanes);
      hn::Vec<HalfTag> last;
      if constexpr (kLast == Last::half) last = hn::Load(HalfTag(), b + kWhole * kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const Vector x = hn::Set(Tag(), row[i][k]);
#pragma GCC unroll 16
        for (int v = 0; v < kWhole; ++v) add_product(x, columns[v], whole[i][v]);
        if constexpr (kLast == Last::half) add_product(first_lanes<HalfTag>(x), last, half[i][0]);
      }
    }
    HWY_INLINE void end(const PanelCall& call, float* c, const float* residual) {
      if constexpr (kLast == Last::pairs) {
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) half[i][0] = add_pairs(pairs[i]);
      }
      if constexpr (kLast != Last::whole) {
        if constexpr (kWhole > 0) Edge<Rows, kWhole>::template end<true>(call, c, residual, whole);
        Edge<Rows, 1, HalfTag>::template end<false>(call, c, residual, half, kWhole * kLanes);
      } else if (call.columns >= Vectors * kLanes) {
        Edge<Rows, kWhole>::template end<true>(call, c, residual, whole);
      } else {
        Edge<Rows, kWhole>::template end<false>(call, c, residual, whole);
      }
    }
  };
};

// Few rows times neighbouring panels, each of so many vectors, so that enough sums are under way: a fused multiply-add takes 4 cycles, and
// two can start in each.
template <int Rows, int Sets, int... Widths>
struct FewRows {
  static constexpr int kPanels = sizeof...(Widths), kWide = (Widths + ...);
  static constexpr int kUnroll = std::max(Sets, Sets == 1 ? 8 : 1);  // more would be more streams than some machines fetch ahead
  static constexpr int width(int panel) {
    constexpr int widths[] = {Widths...};
    return widths[panel];
  }
  static constexpr int first(int panel) { return panel == 0 ? 0 : first(panel - 1) + width(panel - 1); }  // vector
  static constexpr int panel_of(int vector) {
    int panel = 0;
    while (panel + 1 < kPanels && first(panel + 1) <= vector) ++panel;
    return panel;
  }

  static HWY_NOINLINE void run(const PanelCall& call, int64_t first_row, float* c, const float* residual) {
    const Tag d;
    const bool full = call.columns >= kWide * kLanes;
    Vector sums[Sets][Rows][kWide];
    if (full) {
      Edge<Rows, kWide>::template begin<true>(call, c, residual, sums[0]);
    } else {
      Edge<Rows, kWide>::template begin<false>(call, c, residual, sums[0]);
    }
#pragma GCC unroll 8
    for (int s = 1; s < Sets; ++s) {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < kWide; ++v) sums[s][i][v] = hn::Zero(d);
      }
    }
    const auto& [a, start, b_depth, behind] = call.part[0];
    const float* b[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) b[p] = start + first(p) * kLanes * b_depth;
    const int64_t depth = a->depth;
    for (int64_t tap = 0; tap < a->taps; ++tap) {
      const float* row[Rows];
      find_rows(*a, first_row, tap, row);
      int64_t k = 0;
      for (; k + kUnroll <= depth; k += kUnroll) {
#pragma GCC unroll 8
        for (int u = 0; u < kUnroll; ++u) {
          step(row, k + u, b, u, sums[u % Sets]);
          asm volatile("" ::: "memory");
        }
        advance(b, kUnroll);
      }
      for (; k < depth; ++k) {
        step(row, k, b, 0, sums[0]);
        advance(b, 1);
      }
    }
#pragma GCC unroll 8
    for (int s = 1; s < Sets; ++s) {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < kWide; ++v) sums[0][i][v] = hn::Add(sums[0][i][v], sums[s][i][v]);
      }
    }
    if (full) {
      Edge<Rows, kWide>::template end<true>(call, c, residual, sums[0]);
    } else {
      Edge<Rows, kWide>::template end<false>(call, c, residual, sums[0]);
    }
  }

 private:
  static HWY_INLINE void step(const float* const (&row)[Rows], int64_t k, const float* const (&b)[kPanels], int u,
                              Vector (&sum)[Rows][kWide]) {
    const Tag d;
    Vector x[Rows];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) x[i] = hn::Set(d, row[i][k]);
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v) {
      const int p = panel_of(v);
      const Vector column = hn::Load(d, b[p] + (u * width(p) + v - first(p)) * kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) add_product(x[i], column, sum[i][v]);
    }
  }
  static HWY_INLINE void advance(const float* (&b)[kPanels], int rows) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) b[p] += rows * width(p) * kLanes;
  }
};

template <int Parts>
using TileFunction = void (*)(const PanelCall&, int64_t, float*, const float*, Ahead<Parts>);

template <int Vectors, Last kLast, int Parts>
struct TileTable {
  static constexpr int kRows = tile_rows(Vectors);
  TileFunction<Parts> of[kRows + 1] = {};  // [rows]
  template <int Rows = 1>
  constexpr TileTable& fill() {
    of[Rows] = &Tile<Rows, Vectors, kLast, Parts>::run;
    if constexpr (Rows < kRows) fill<Rows + 1>();
    return *this;
  }
};

template <int Vectors, int Parts>
void rows(const PanelCall& call) {
  constexpr Last kHalf = kHalves ? Last::half : Last::whole, kPairs = kHasPairs && Parts == 1 ? Last::pairs : Last::whole;
  static constexpr auto whole = TileTable<Vectors, Last::whole, Parts>().fill();
  static constexpr auto halved = TileTable<Vectors, kHalf, Parts>().fill();
  static constexpr auto paired = TileTable<Vectors, kPairs, Parts>().fill();
  constexpr int64_t kFull = tile_rows(Vectors);
  const bool ends_in_half = kHalves && call.columns <= Vectors * kLanes - kLanes / 2;
  const TileFunction<Parts>* run = call.in_pairs ? paired.of : ends_in_half ? halved.of : whole.of;
  const int64_t count = call.part[0].a->count;
  // The next part of B is fetched while this one, which the first tile brings near, is used by the others.
  const int64_t tiles = (count + kFull - 1) / kFull;
  int64_t turns[Parts], all_turns = 0, lines = 0;
  Ahead<Parts> ahead;
  for (int part = 0; part < Parts; ++part) {
    const auto& [a, b, b_depth, behind] = call.part[part];
    ahead.data[part] = b + behind;
    lines += behind / kLine;
    all_turns += turns[part] = a->taps * (a->depth / 8);
  }
  all_turns *= tiles;
  if (tiles > 1 && all_turns > 0) ahead.lines = (lines + all_turns - 1) / all_turns;
  for (int64_t row = 0; row < count;) {
    const int64_t left = count - row;
    // The last two tiles share what is left: two middling tiles are faster than a full one and one of a single row.
    const int64_t now = left >= 2 * kFull ? kFull : left > kFull ? (left + 1) / 2 : left;
    run[now](call, row, call.c + row * call.c_stride, call.residual ? call.residual + row * call.residual_stride : nullptr, ahead);
    for (int part = 0; part < Parts; ++part) ahead.data[part] += ahead.lines * kLine * turns[part];
    row += now;
  }
}

template <int... Widths>
void one_row_of(const PanelCall& call) {
  FewRows<1, 1, Widths...>::run(call, 0, call.c, call.residual);
}

// A narrow matrix, as many rows at once as there are registers for.
template <int Vectors, int Sets>
void narrow(const PanelCall& call) {
  constexpr int kRows = kRegisters == 32 ? 24 / (Sets * Vectors) : 1;
  const int64_t count = call.part[0].a->count;
  for (int64_t row = 0; row < count;) {
    const int64_t now = count - row >= kRows ? kRows : 1;
    const auto run = now == kRows ? &FewRows<kRows, Sets, Vectors>::run : &FewRows<1, Sets, Vectors>::run;
    run(call, row, call.c + row * call.c_stride, call.residual ? call.residual + row * call.residual_stride : nullptr);
    row += now;
  }
}

// Groups of panels: what was used last is the first of the next turn, and should still be in the first-level cache then. Wide vectors need
// fewer of them to have enough sums under way.
constexpr int64_t kMostThrees = kLanes >= 16 ? 2 : 3;

void one_row(PanelCall& call, int64_t threes, int64_t twos, bool backwards) {
  using Function = void (*)(const PanelCall&);
  static constexpr Function table[4][3] = {{nullptr, &one_row_of<2>, &one_row_of<2, 2>},
                                           {&one_row_of<3>, &one_row_of<3, 2>, &one_row_of<3, 2, 2>},
                                           {&one_row_of<3, 3>, &one_row_of<3, 3, 2>, &one_row_of<3, 3, 2, 2>},
                                           {&one_row_of<3, 3, 3>, &one_row_of<3, 3, 3, 2>, &one_row_of<3, 3, 3, 2, 2>}};
  const int64_t alone = kLanes >= 16 && twos == 2 && threes >= 2 ? twos : 0;  // panels of 2 that are a group of their own
  int64_t at = 0;
  const auto go_to = [&](int64_t column) {
    const int64_t way = column - at;
    call.part[0].b += way * call.part[0].b_depth;
    call.c += way;
    call.columns -= way;
    if (call.bias) call.bias += way;
    if (call.residual) call.residual += way;
    at = column;
  };
  for (int64_t done = 0, all_threes = threes; threes + twos > 0;) {  // threes from the first on, unless backwards
    int64_t now = threes == 4 ? 2 : std::min(threes, kMostThrees);   // few sums are left for the end
    if (threes == 3) now = 3;
    if (backwards && alone > 0 && twos > 0) now = 0;
    const int64_t also = now == 0 || (alone == 0 && (backwards || threes == now)) ? twos : 0;
    go_to((now == 0 ? all_threes : backwards ? threes - now : done) * 3 * kLanes);
    table[now][also](call);
    done += now;
    threes -= now;
    twos -= also;
  }
  go_to(0);
}

const PanelKernels& kernels() {
  // Of a panel: three quarters of a first-level cache, 24 KiB where nobody knows it.
  static const int64_t floats = std::clamp<int64_t>(sysconf(_SC_LEVEL1_DCACHE_SIZE), 32 * 1024, 64 * 1024) / 16 * 3;
  static const PanelKernels table = {kLanes,
                                     kHasPairs,
                                     {0, floats / kLanes, floats / (2 * kLanes), floats / (3 * kLanes), floats / (4 * kLanes)},
                                     {nullptr, &rows<1, 1>, &rows<2, 1>, &rows<3, 1>},
                                     {nullptr, &rows<1, 2>, &rows<2, 2>, &rows<3, 2>},
                                     &one_row,
                                     {nullptr, &narrow<1, 8>, &narrow<2, 4>, &narrow<3, 4>, &narrow<4, 2>}};
  return table;
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(kernels);

const PanelKernels& panel_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

}  // namespace tutti::cpu
#endif
