#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/gemm/near_kernel.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/device/cpu/gemm/edge_inl.h"
#include "tutti/device/cpu/gemm/near_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

// Rows rows times a panel of Vectors vectors.
template <int Rows, int Vectors, bool ByColumns>
struct NearTile {
  static HWY_NOINLINE void run(const NearCall& call, const float* a, float* c, const float* residual) {
    (call.panel.columns >= Vectors * kLanes ? product<true> : product<false>)(call, a, c, residual);
  }

 private:
  // Three rows share a pointer: the strides of the others are part of the address.
  static constexpr int kPointers = ByColumns ? 1 : (Rows + 2) / 3;
  static constexpr int kUnroll = 4;

  template <bool Full>
  static void product(const NearCall& call, const float* a, float* c, const float* residual) {
    Vector sums[Rows][Vectors];
    Edge<Rows, Vectors>::template begin<Full>(call.panel, c, residual, sums);
    const int64_t last = Full ? kLanes : call.panel.columns - (Vectors - 1) * kLanes;
    const RowsOfA& rows = *call.panel.part[0].a;
    const float* at[kPointers];
#pragma GCC unroll 16
    for (int p = 0; p < kPointers; ++p) at[p] = a + 3 * p * rows.stride;
    const float* b = call.panel.part[0].b;
    const int64_t depth = rows.depth, stride = rows.stride, a_step = call.a_step;
    int64_t k = 0;
    for (; k + kUnroll <= depth; k += kUnroll) {
#pragma GCC unroll 8
      for (int u = 0; u < kUnroll; ++u, b += call.b_stride) {
        step<Full>(at, stride, ByColumns ? 0 : u, b, last, sums);
        if (ByColumns) at[0] += a_step;
        asm volatile("" ::: "memory");  // loads stay with their step: hoisted, they would push sums out of registers
      }
      advance(at, kUnroll);
    }
    for (; k < depth; ++k, b += call.b_stride) {
      step<Full>(at, stride, 0, b, last, sums);
      if (ByColumns) at[0] += a_step;
      advance(at, 1);
    }
    Edge<Rows, Vectors>::template end<Full>(call.panel, c, residual, sums);
  }

  static HWY_INLINE void advance(const float* (&at)[kPointers], int elements) {
    if (ByColumns) return;
#pragma GCC unroll 16
    for (int p = 0; p < kPointers; ++p) at[p] += elements;
  }

  template <bool Full>
  static HWY_INLINE void step(const float* const (&at)[kPointers], int64_t stride, int k, const float* b, int64_t last,
                              Vector (&sum)[Rows][Vectors]) {
    const Tag d;
    Vector columns[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      columns[v] = Full || v + 1 < Vectors ? hn::LoadU(d, b + v * kLanes) : load_first(b + v * kLanes, last);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Vector x = hn::Set(d, ByColumns ? at[0][i] : at[i / 3 % kPointers][i % 3 * stride + k]);
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) sum[i][v] = hn::MulAdd(x, columns[v], sum[i][v]);
    }
  }
};

using NearFunction = void (*)(const NearCall&, const float*, float*, const float*);

template <int Vectors, bool ByColumns>
struct NearTable {
  static constexpr int kRows = tile_rows(Vectors);
  NearFunction of[kRows + 1] = {};  // [rows]
  template <int Rows = 1>
  constexpr NearTable& fill() {
    of[Rows] = &NearTile<Rows, Vectors, ByColumns>::run;
    if constexpr (Rows < kRows) fill<Rows + 1>();
    return *this;
  }
};

template <int Vectors, bool ByColumns>
void near_rows(const NearCall& call) {
  static constexpr auto table = NearTable<Vectors, ByColumns>().fill();
  constexpr int64_t kFull = NearTable<Vectors, ByColumns>::kRows;
  const RowsOfA& a = *call.panel.part[0].a;
  const float* residual = call.panel.residual;
  for (int64_t row = 0; row < a.count;) {
    const int64_t left = a.count - row;
    const int64_t now = left >= 2 * kFull ? kFull : left > kFull ? (left + 1) / 2 : left;
    table.of[now](call, a.data + row * a.stride, call.panel.c + row * call.panel.c_stride, residual);
    if (residual != nullptr) residual += now * call.panel.residual_stride;
    row += now;
  }
}

const NearKernels& kernels_near() {
  static constexpr NearKernels table = {HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3,
                                        {nullptr, &near_rows<1, false>, &near_rows<2, false>, &near_rows<3, false>},
                                        {nullptr, &near_rows<1, true>, &near_rows<2, true>, &near_rows<3, true>}};
  return table;
}

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(kernels_near);

const NearKernels& near_kernels() { return HWY_DYNAMIC_DISPATCH(kernels_near)(); }

}  // namespace tutti::cpu
#endif
