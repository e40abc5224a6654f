// Vectors of floats as the kernels of this folder load and store them: whole, or the first few lanes without touching memory behind them.
#if defined(TUTTI_DEVICE_CPU_GEMM_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_DEVICE_CPU_GEMM_VECTORS_INL_H
#undef TUTTI_DEVICE_CPU_GEMM_VECTORS_INL_H
#else
#define TUTTI_DEVICE_CPU_GEMM_VECTORS_INL_H
#endif

#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

constexpr int kLanes = HWY_LANES(float);

HWY_INLINE Vector load_first(const float* from, int64_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3  // masked memory operations that do not fault
  return hn::MaskedLoad(hn::FirstN(Tag(), static_cast<size_t>(count)), Tag(), from);
#else
  HWY_ALIGN float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return hn::Load(Tag(), lanes);
#endif
}

HWY_INLINE void store_first(Vector v, float* to, int64_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(Tag(), static_cast<size_t>(count)), Tag(), to);
#else
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, Tag(), lanes);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

// Lanes column to column + kLanes of a row that has `columns`. Full: they all exist.
template <bool Full>
HWY_INLINE Vector load(const float* row, int64_t column, int64_t columns) {
  if (Full || column + kLanes <= columns) return hn::LoadU(Tag(), row + column);
  return column >= columns ? hn::Zero(Tag()) : load_first(row + column, columns - column);
}

template <bool Full>
HWY_INLINE void store(Vector v, float* row, int64_t column, int64_t columns) {
  if (Full || column + kLanes <= columns) {
    hn::StoreU(v, Tag(), row + column);
  } else if (column < columns) {
    store_first(v, row + column, columns - column);
  }
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
