// The first elements of a vector, loaded and stored without touching memory beyond them: the tails of loops.
#if defined(TUTTI_DEVICE_CPU_SIMD_PARTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_DEVICE_CPU_SIMD_PARTS_INL_H
#undef TUTTI_DEVICE_CPU_SIMD_PARTS_INL_H
#else
#define TUTTI_DEVICE_CPU_SIMD_PARTS_INL_H
#endif

#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Lanes at `count` and above are zero. AVX2 and AVX-512 have an instruction for it (of 32 bits and more); others go through a buffer.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::VFromD<D> load_part(D d, const T* from, size_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) >= 4) return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#endif
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(buffer, from, count * sizeof(T));
  return hn::Load(d, buffer);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_part(hn::VFromD<D> v, D d, T* to, size_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) >= 4) return hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#endif
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, buffer);
  std::memcpy(to, buffer, count * sizeof(T));
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
