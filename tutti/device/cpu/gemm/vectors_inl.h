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
#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

constexpr int kLanes = HWY_LANES(float);

// 32 registers for vectors, or 16.
constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;

// Half a vector, for the end of a row: where vectors are wide, the machine computes it in half the time.
constexpr bool kHalves = kLanes == 16;
using HalfTag = hn::CappedTag<float, kHalves ? kLanes / 2 : kLanes>;

// The first lanes of a vector, or all of them.
template <class D>
HWY_INLINE hn::Vec<D> first_lanes(Vector v) {
  if constexpr (std::is_same_v<D, Tag>) {
    return v;
  } else {
    return hn::LowerHalf(D(), v);
  }
}

// sum += x y, in the register where the sum is: GCC lets sums wander from register to register, and spills one when they are many. The
// instruction is told of locals: elements of an array that it names are in memory from then on, stored although nobody loads them.
template <class V>
HWY_INLINE void add_product(V x, V y, V& sum) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  auto raw = sum.raw;
  asm("vfmadd231ps %2, %1, %0" : "+v"(raw) : "v"(x.raw), "v"(y.raw));
  sum.raw = raw;
#else
  sum = hn::MulAdd(x, y, sum);
#endif
}

// Pairs of neighbours, of which a vector has as many as half a vector has lanes.
#if HWY_TARGET == HWY_AVX3
constexpr bool kHasPairs = true;

// The two floats at `from`, again and again.
HWY_INLINE Vector load_pair(const float* from) {
  const hn::Repartition<double, Tag> pairs;
  double both;
  std::memcpy(&both, from, sizeof both);
  return hn::BitCast(Tag(), hn::Set(pairs, both));
}

// Each lane of half a vector, and zero beside it.
HWY_INLINE Vector spread(hn::Vec<HalfTag> half) {
  const hn::Repartition<uint64_t, Tag> pairs;
  return hn::BitCast(Tag(), hn::PromoteTo(pairs, hn::BitCast(hn::RebindToUnsigned<HalfTag>(), half)));
}

// The sum of each two neighbours.
HWY_INLINE hn::Vec<HalfTag> add_pairs(Vector v) {
  const hn::Repartition<uint64_t, Tag> pairs;
  const Vector sums = hn::Add(v, hn::BitCast(Tag(), hn::ShiftRight<32>(hn::BitCast(pairs, v))));
  return hn::BitCast(HalfTag(), hn::TruncateTo(hn::RebindToUnsigned<HalfTag>(), hn::BitCast(pairs, sums)));
}
#else
constexpr bool kHasPairs = false;
#endif

// Loads a vector at this point of the program and not before: hoisted, it would push sums out of registers.
HWY_INLINE Vector load_here(const float* from) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  decltype(Vector::raw) raw;
  asm volatile("vmovups %1, %0" : "=v"(raw) : "m"(*reinterpret_cast<const float(*)[kLanes]>(from)));
  return Vector{raw};
#else
  return hn::LoadU(Tag(), from);
#endif
}

template <class D = Tag>
HWY_INLINE hn::Vec<D> load_first(const float* from, int64_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3  // masked memory operations that do not fault
  return hn::MaskedLoad(hn::FirstN(D(), static_cast<size_t>(count)), D(), from);
#else
  HWY_ALIGN float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return hn::Load(D(), lanes);
#endif
}

template <class D = Tag>
HWY_INLINE void store_first(hn::Vec<D> v, float* to, int64_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(D(), static_cast<size_t>(count)), D(), to);
#else
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, D(), lanes);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

// A vector's lanes from `column` on, of a row that has `columns`. Full: they all exist.
template <bool Full, class D = Tag>
HWY_INLINE hn::Vec<D> load(const float* row, int64_t column, int64_t columns) {
  if (Full || column + static_cast<int64_t>(hn::Lanes(D())) <= columns) return hn::LoadU(D(), row + column);
  return column >= columns ? hn::Zero(D()) : load_first<D>(row + column, columns - column);
}

template <bool Full, class D = Tag>
HWY_INLINE void store(hn::Vec<D> v, float* row, int64_t column, int64_t columns) {
  if (Full || column + static_cast<int64_t>(hn::Lanes(D())) <= columns) {
    hn::StoreU(v, D(), row + column);
  } else if (column < columns) {
    store_first<D>(v, row + column, columns - column);
  }
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
