#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/gemm/panel_kernel.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/device/cpu/gemm/panel_kernel.h"
#include "tutti/device/cpu/gemm/vectors_inl.h"
#include "tutti/device/cpu/simd/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

constexpr int kRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 32 : 16;

// Rows of a full tile: sums fill the registers but for one vector of B per column and one element of A.
constexpr int tile_rows(int vectors) {
  if (kRegisters == 32) return vectors == 3 ? 8 : 12;
  return vectors == 3 ? 4 : vectors == 2 ? 6 : 8;
}

// One tile: Rows rows times Panels panels of Vectors vectors.
template <int Rows, int Vectors, int Panels>
struct Tile {
  static constexpr int kWide = Vectors * Panels;
  // Few sums: the depth is split among several sets of them, because a fused multiply-add takes 4 cycles and two can start in each.
  static constexpr int kSets = Rows * kWide >= 8 ? 1 : Rows * kWide >= 4 ? 2 : Rows * kWide >= 2 ? 4 : 8;
  static constexpr int kUnroll = kSets == 1 ? 8 : kSets;

  template <bool Full>
  static HWY_INLINE void begin(const PanelCall& call, const float* c, Vector (&sum)[Rows][kWide]) {
    const Tag d;
    if (call.accumulate) {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < kWide; ++v) sum[i][v] = load<Full>(c + i * call.c_stride, v * kLanes, call.columns);
      }
      return;
    }
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v) {
      const Vector bias = call.bias ? load<Full>(call.bias, v * kLanes, call.columns) : hn::Zero(d);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) sum[i][v] = bias;
    }
  }

  template <bool Full>
  static HWY_INLINE void end(const PanelCall& call, float* c, const float* residual, Vector (&sum)[Rows][kWide]) {
    const Tag d;
    if (residual) {
      const int64_t stride = call.epilogue->residual_stride;
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < kWide; ++v) sum[i][v] = hn::Add(sum[i][v], load<Full>(residual + i * stride, v * kLanes, call.columns));
      }
    }
    if (call.epilogue && call.epilogue->activation == Activation::clip) {
      const float low = call.epilogue->low, high = call.epilogue->high;
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < kWide; ++v) sum[i][v] = at_most(at_least(sum[i][v], low), high);
      }
    } else if (call.epilogue && call.epilogue->activation == Activation::leaky_relu) {
      const Vector alpha = hn::Set(d, call.epilogue->alpha);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < kWide; ++v) sum[i][v] = hn::IfThenElse(hn::Lt(sum[i][v], hn::Zero(d)), hn::Mul(sum[i][v], alpha), sum[i][v]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < kWide; ++v) store<Full>(sum[i][v], c + i * call.c_stride, v * kLanes, call.columns);
    }
  }

  // a: the starts of the rows.
  static HWY_NOINLINE void run(const PanelCall& call, const float* const* a, float* c, const float* residual) {
    const Tag d;
    const bool full = call.columns >= kWide * kLanes;
    Vector sums[kSets][Rows][kWide];
    if (full) {
      begin<true>(call, c, sums[0]);
    } else {
      begin<false>(call, c, sums[0]);
    }
#pragma GCC unroll 8
    for (int s = 1; s < kSets; ++s) {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < kWide; ++v) sums[s][i][v] = hn::Zero(d);
      }
    }
    const float* b[Panels];
#pragma GCC unroll 8
    for (int p = 0; p < Panels; ++p) b[p] = call.b + p * call.b_stride;

    const int64_t depth = call.a.depth;
    for (int64_t tap = 0; tap < call.a.taps; ++tap) {
      const int64_t offset = call.a.tap_offsets ? call.a.tap_offsets[tap] : 0;
      const float* row[Rows];
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) row[i] = a[i] + offset;
      int64_t k = 0;
      for (; k + kUnroll <= depth; k += kUnroll) {
#pragma GCC unroll 8
        for (int u = 0; u < kUnroll; ++u) {
          step(row, k + u, b, u, sums[u % kSets]);
          asm volatile("" ::: "memory");  // loads stay with their step: hoisted, they would push sums out of registers
        }
#pragma GCC unroll 8
        for (int p = 0; p < Panels; ++p) b[p] += kUnroll * Vectors * kLanes;
      }
      for (; k < depth; ++k) {
        step(row, k, b, 0, sums[0]);
#pragma GCC unroll 8
        for (int p = 0; p < Panels; ++p) b[p] += Vectors * kLanes;
      }
    }
#pragma GCC unroll 8
    for (int s = 1; s < kSets; ++s) {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < kWide; ++v) sums[0][i][v] = hn::Add(sums[0][i][v], sums[s][i][v]);
      }
    }
    if (full) {
      end<true>(call, c, residual, sums[0]);
    } else {
      end<false>(call, c, residual, sums[0]);
    }
  }

 private:
  static HWY_INLINE void step(const float* const (&row)[Rows], int64_t k, const float* const (&b)[Panels], int u,
                              Vector (&sum)[Rows][kWide]) {
    const Tag d;
    Vector columns[kWide];
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v) columns[v] = hn::Load(d, b[v / Vectors] + (u * Vectors + v % Vectors) * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Vector x = hn::Set(d, row[i][k]);
#pragma GCC unroll 16
      for (int v = 0; v < kWide; ++v) sum[i][v] = hn::MulAdd(x, columns[v], sum[i][v]);
    }
  }
};

using TileFunction = void (*)(const PanelCall&, const float* const*, float*, const float*);

template <int Vectors>
struct TileTable {
  static constexpr int kRows = tile_rows(Vectors);
  TileFunction of[kRows + 1] = {};  // [rows]
  template <int Rows = 1>
  constexpr TileTable& fill() {
    of[Rows] = &Tile<Rows, Vectors, 1>::run;
    if constexpr (Rows < kRows) fill<Rows + 1>();
    return *this;
  }
};

template <int Vectors>
void rows(const PanelCall& call) {
  static constexpr TileTable<Vectors> table = TileTable<Vectors>().fill();
  constexpr int64_t kFull = TileTable<Vectors>::kRows;
  const RowsOfA& a = call.a;
  const int64_t residual_stride = call.residual ? call.epilogue->residual_stride : 0;
  const float* starts[kFull];
  for (int64_t row = 0; row < a.count;) {
    const int64_t left = a.count - row;
    // The last two tiles share what is left: two middling tiles are faster than a full one and one of a single row.
    const int64_t now = left >= 2 * kFull ? kFull : left > kFull ? (left + 1) / 2 : left;
    if (a.offsets) {
      for (int64_t i = 0; i < now; ++i) starts[i] = a.data + a.offsets[row + i];
    } else {
      for (int64_t i = 0; i < now; ++i) starts[i] = a.data + (row + i) * a.stride;
    }
    table.of[now](call, starts, call.c + row * call.c_stride, call.residual ? call.residual + row * residual_stride : nullptr);
    row += now;
  }
}

// Several panels at once, so that enough sums are under way.
template <int Vectors>
void one_row(const PanelCall& all, int64_t panels) {
  constexpr int kPanels = Vectors == 3 ? 3 : Vectors == 2 ? 4 : 8;
  constexpr int kWidth = Vectors * kLanes;
  const float* start = all.a.offsets ? all.a.data + all.a.offsets[0] : all.a.data;
  PanelCall call = all;
  while (panels > 0) {
    TileFunction tile = &Tile<1, Vectors, 1>::run;
    int64_t now = 1;
    if (panels >= kPanels) {
      tile = &Tile<1, Vectors, kPanels>::run;
      now = kPanels;
    } else if (panels >= 2) {
      tile = &Tile<1, Vectors, 2>::run;
      now = 2;
    }
    tile(call, &start, call.c, call.residual);
    panels -= now;
    const int64_t columns = now * kWidth;
    call.b += now * call.b_stride;
    call.c += columns;
    call.columns -= columns;
    if (call.bias) call.bias += columns;
    if (call.residual) call.residual += columns;
  }
}

const PanelKernels& kernels() {
  constexpr int64_t kFloats = 6 * 1024;  // of a panel, 24 KiB
  static constexpr PanelKernels table = {kLanes,
                                         {0, kFloats / kLanes, kFloats / (2 * kLanes), kFloats / (3 * kLanes)},
                                         {nullptr, &rows<1>, &rows<2>, &rows<3>},
                                         {nullptr, &one_row<1>, &one_row<2>, &one_row<3>}};
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
