#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/gemm/tiny_kernel.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "tutti/device/cpu/gemm/tiny_kernel.h"
#include "tutti/device/cpu/simd/parts_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

// Depth 0: any, known only when it runs.
template <int Columns, int Depth>
void rows_of_depth(const TinyCall& call) {
  const int64_t depth = Depth > 0 ? Depth : call.depth;
  float b[Depth > 0 ? Depth * Columns : TinyKernels::most_floats];
  std::copy_n(call.b, depth * Columns, b);
  const float* a = call.a;
  float* c = call.c;
  for (int64_t row = 0; row < call.rows; ++row, a += call.a_stride, c += call.c_stride) {
    float sums[Columns];
#pragma GCC unroll 4
    for (int n = 0; n < Columns; ++n) sums[n] = a[0] * b[n];
#pragma GCC unroll 8
    for (int64_t k = 1; k < depth; ++k) {
#pragma GCC unroll 4
      for (int n = 0; n < Columns; ++n) sums[n] += a[k] * b[k * Columns + n];
    }
#pragma GCC unroll 4
    for (int n = 0; n < Columns; ++n) c[n] = sums[n];
  }
}

template <int Columns>
void tiny_rows(const TinyCall& call) {
  using Function = void (*)(const TinyCall&);
  static constexpr Function by_depth[] = {&rows_of_depth<Columns, 0>, &rows_of_depth<Columns, 1>, &rows_of_depth<Columns, 2>,
                                          &rows_of_depth<Columns, 3>, &rows_of_depth<Columns, 4>, &rows_of_depth<Columns, 5>,
                                          &rows_of_depth<Columns, 6>, &rows_of_depth<Columns, 7>, &rows_of_depth<Columns, 8>};
  by_depth[call.depth <= 8 ? call.depth : 0](call);
}

// Rows of C side by side in a vector, and sums in sets, of every fourth place each, so that additions do not wait for each other.
template <class Tag, int Columns>
void columns_by(Tag d, const TinyCall& call) {
  using Vector = hn::Vec<Tag>;
  constexpr int kSets = 4;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float sums_of[Columns][HWY_MAX_BYTES / sizeof(float)];
  for (int64_t first = 0; first < call.rows; first += lanes) {
    const int64_t now = std::min(lanes, call.rows - first);
    const auto some = hn::FirstN(d, static_cast<size_t>(now));
    Vector sums[kSets][Columns];
#pragma GCC unroll 16
    for (int s = 0; s < kSets; ++s) {
#pragma GCC unroll 4
      for (int n = 0; n < Columns; ++n) sums[s][n] = hn::Zero(d);
    }
    const float *a = call.a + first, *b = call.b;
    const auto step = [&](Vector(&to)[Columns]) HWY_ATTR {
      const Vector x = hn::MaskedLoad(some, d, a);
#pragma GCC unroll 4
      for (int n = 0; n < Columns; ++n) to[n] = hn::MulAdd(x, hn::Set(d, b[n]), to[n]);
      a += call.a_stride;
      b += call.b_stride;
    };
    int64_t k = 0;
    for (; k + kSets <= call.depth; k += kSets) {
#pragma GCC unroll 16
      for (int s = 0; s < kSets; ++s) step(sums[s]);
    }
    for (; k < call.depth; ++k) step(sums[0]);
#pragma GCC unroll 4
    for (int n = 0; n < Columns; ++n) hn::Store(hn::Add(hn::Add(sums[0][n], sums[1][n]), hn::Add(sums[2][n], sums[3][n])), d, sums_of[n]);
    float* c = call.c + first * call.c_stride;
    for (int64_t i = 0; i < now; ++i, c += call.c_stride) {
#pragma GCC unroll 4
      for (int n = 0; n < Columns; ++n) c[n] = sums_of[n][i];
    }
  }
}

// Narrow vectors for few rows: two of them begin in a cycle where a wide one does.
template <int Columns>
void tiny_columns(const TinyCall& call) {
  if (call.rows <= 8) return columns_by<hn::CappedTag<float, 8>, Columns>({}, call);
  columns_by<hn::ScalableTag<float>, Columns>({}, call);
}

const TinyKernels& kernels_tiny() {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3  // masked loads that do not fault
  static constexpr TinyKernels table = {{nullptr, &tiny_rows<1>, &tiny_rows<2>, &tiny_rows<3>, &tiny_rows<4>},
                                        {nullptr, &tiny_columns<1>, &tiny_columns<2>, &tiny_columns<3>, &tiny_columns<4>}};
#else
  static constexpr TinyKernels table = {{nullptr, &tiny_rows<1>, &tiny_rows<2>, &tiny_rows<3>, &tiny_rows<4>}, {}};
#endif
  return table;
}

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(kernels_tiny);

const TinyKernels& tiny_kernels() { return HWY_DYNAMIC_DISPATCH(kernels_tiny)(); }

}  // namespace tutti::cpu
#endif
