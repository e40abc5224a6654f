// Reductions of one row of floats as vector code, for kernels that reduce rows on their way.
#if defined(TUTTI_DEVICE_CPU_LOOPS_REDUCE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_DEVICE_CPU_LOOPS_REDUCE_INL_H
#undef TUTTI_DEVICE_CPU_LOOPS_REDUCE_INL_H
#else
#define TUTTI_DEVICE_CPU_LOOPS_REDUCE_INL_H
#endif

#include <algorithm>
#include <limits>

#include "tutti/device/cpu/simd/math_inl.h"
#include "tutti/device/cpu/simd/parts_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::VFromD<FloatTag>;

struct SumOf {
  static constexpr float identity = 0;
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Add(a, b);
  }
  static HWY_INLINE float of(float a, float b) { return a + b; }
};
struct ProductOf {
  static constexpr float identity = 1;
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Mul(a, b);
  }
  static HWY_INLINE float of(float a, float b) { return a * b; }
};
struct LargestOf {
  static constexpr float identity = -std::numeric_limits<float>::infinity();
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return maximum(a, b);
  }
  static HWY_INLINE float of(float a, float b) { return a > b || a != a ? a : b; }
};
struct SmallestOf {
  static constexpr float identity = std::numeric_limits<float>::infinity();
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return minimum(a, b);
  }
  static HWY_INLINE float of(float a, float b) { return a < b || a != a ? a : b; }
};

// The lanes of a vector as one number: the halves, then their halves, and so on.
template <class F, class V>
HWY_INLINE float fold(V v) {
#if HWY_TARGET == HWY_SCALAR
  return hn::GetLane(v);
#else
  const hn::DFromV<V> d;
  if constexpr (hn::MaxLanes(d) > 4) {
    const hn::Half<decltype(d)> half;
    return fold<F>(F::of(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    const V pairs = F::of(v, hn::Shuffle1032(v));
    return hn::GetLane(F::of(pairs, hn::Shuffle2301(pairs)));
  }
#endif
}

// Elements of a row that are summed before the sums are summed.
inline constexpr size_t sum_block = 8192;

// F over map(x[i]) of up to a block of elements; map(vector, i) sees a whole vector of elements i, i + 1, ... and its tail's other lanes
// are replaced by the identity.
template <class F, class Map>
HWY_INLINE float reduce_block(const float* x, size_t begin, size_t end, const Map& map) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const FloatVector identity = hn::Set(d, F::identity);
  FloatVector a = identity, b = identity, c = identity, e = identity;
  size_t i = begin;
  for (; i + 4 * lanes <= end; i += 4 * lanes) {
    a = F::of(a, map(hn::LoadU(d, x + i), i));
    b = F::of(b, map(hn::LoadU(d, x + i + lanes), i + lanes));
    c = F::of(c, map(hn::LoadU(d, x + i + 2 * lanes), i + 2 * lanes));
    e = F::of(e, map(hn::LoadU(d, x + i + 3 * lanes), i + 3 * lanes));
  }
  for (; i + lanes <= end; i += lanes) a = F::of(a, map(hn::LoadU(d, x + i), i));
  if (i < end) {
    const FloatVector part = map(load_part(d, x + i, end - i), i);
    b = F::of(b, hn::IfThenElse(hn::FirstN(d, end - i), part, identity));
  }
  return fold<F>(F::of(F::of(a, b), F::of(c, e)));
}

// F over map(x[i]) of a row. The sums of blocks are added as doubles.
template <class F, class Map>
HWY_INLINE float reduce_row(const float* x, size_t length, const Map& map) {
  if (length <= sum_block) return reduce_block<F>(x, 0, length, map);
  if constexpr (std::is_same_v<F, SumOf>) {
    double sum = 0;
    for (size_t i = 0; i < length; i += sum_block) sum += reduce_block<F>(x, i, std::min(length, i + sum_block), map);
    return static_cast<float>(sum);
  } else {
    return reduce_block<F>(x, 0, length, map);
  }
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
