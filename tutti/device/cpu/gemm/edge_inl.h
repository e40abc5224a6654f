// What tiles of sums share: how large they are, and what lies between their registers and memory.
#if defined(TUTTI_DEVICE_CPU_GEMM_EDGE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_DEVICE_CPU_GEMM_EDGE_INL_H
#undef TUTTI_DEVICE_CPU_GEMM_EDGE_INL_H
#else
#define TUTTI_DEVICE_CPU_GEMM_EDGE_INL_H
#endif

#include <limits>

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

// Between the sums of some rows and memory: Rows rows of Wide vectors, from a column of the call on.
template <int Rows, int Wide, class D = Tag>
struct Edge {
  using Sum = hn::Vec<D>;
  static constexpr int64_t kWidth = std::is_same_v<D, Tag> ? kLanes : kLanes / 2;

  template <bool Full>
  static HWY_INLINE void begin(const PanelCall& call, const float* c, const float* residual, Sum (&sum)[Rows][Wide], int64_t column = 0) {
    const int64_t columns = call.columns;
    if (call.accumulate || call.residual_first) {
      const float* const from = call.accumulate ? c : residual;
      const int64_t stride = call.accumulate ? call.c_stride : call.residual_stride;
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < Wide; ++v) sum[i][v] = load<Full, D>(from + i * stride, column + v * kWidth, columns);
      }
      return;
    }
#pragma GCC unroll 16
    for (int v = 0; v < Wide; ++v) {
      const Sum bias = call.bias ? load<Full, D>(call.bias, column + v * kWidth, columns) : hn::Zero(D());
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) sum[i][v] = bias;
    }
  }

  template <bool Full>
  static HWY_INLINE void end(const PanelCall& call, float* c, const float* residual, Sum (&sum)[Rows][Wide], int64_t column = 0) {
    const D d;
    const int64_t stride = call.c_stride, columns = call.columns;  // read once: for the compiler, vectors may be stored over the call
    const Epilogue* const epilogue = call.epilogue;
    if (residual && !call.residual_first) {
      const int64_t residual_stride = call.residual_stride;
      const bool gates = epilogue->activation == Activation::gate;
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < Wide; ++v) {
          const Sum other = load<Full, D>(residual + i * residual_stride, column + v * kWidth, columns);
          sum[i][v] = gates ? hn::IfThenElseZero(hn::Gt(other, hn::Zero(d)), sum[i][v]) : hn::Add(sum[i][v], other);
        }
      }
    }
    if (epilogue && epilogue->activation == Activation::clip) {
      const float low = epilogue->low, high = epilogue->high;
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < Wide; ++v) sum[i][v] = at_least(sum[i][v], low);
      }
      if (high < std::numeric_limits<float>::infinity()) {  // of relu it is infinity
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
          for (int v = 0; v < Wide; ++v) sum[i][v] = at_most(sum[i][v], high);
        }
      }
    } else if (epilogue && epilogue->activation == Activation::leaky_relu) {
      const Sum alpha = hn::Set(d, epilogue->alpha);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int v = 0; v < Wide; ++v) sum[i][v] = hn::IfThenElse(hn::Lt(sum[i][v], hn::Zero(d)), hn::Mul(sum[i][v], alpha), sum[i][v]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < Wide; ++v) store<Full, D>(sum[i][v], c + i * stride, column + v * kWidth, columns);
    }
  }
};

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
