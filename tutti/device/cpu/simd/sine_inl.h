// Sine and cosine of float vectors, as the functions of math_inl.h are.
#if defined(TUTTI_DEVICE_CPU_SIMD_SINE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_DEVICE_CPU_SIMD_SINE_INL_H
#undef TUTTI_DEVICE_CPU_SIMD_SINE_INL_H
#else
#define TUTTI_DEVICE_CPU_SIMD_SINE_INL_H
#endif

#include <cmath>

#include "tutti/device/cpu/simd/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

// Up to here three floats are enough of pi / 2, if products are not rounded before they are subtracted.
constexpr float kMostTurned = HWY_NATIVE_FMA ? 1e5f : -1.0f;

// Those lanes that are beyond it, or no numbers.
template <class V>
HWY_NOINLINE V turned_far(V x, V near, double (*function)(double)) {
  const hn::DFromV<V> d;
  HWY_ALIGN float from[hn::MaxLanes(d)], to[hn::MaxLanes(d)];
  hn::Store(x, d, from);
  hn::Store(near, d, to);
  for (size_t i = 0; i < hn::Lanes(d); ++i)
    if (!(std::fabs(from[i]) <= kMostTurned)) to[i] = static_cast<float>(function(static_cast<double>(from[i])));
  return hn::Load(d, to);
}

// sin(x + quarters * pi / 2). x is n pi / 2 and a rest of at most pi / 4, whose sine or cosine it is, or the opposite.
template <int quarters, class V>
HWY_INLINE V sine_turned(V x, double (*function)(double)) {
  const hn::RebindToSigned<hn::DFromV<V>> integers;
  const V shift = all(x, 0x1.8p23f), shifted = hn::MulAdd(x, all(x, 0.636619772f), shift), n = hn::Sub(shifted, shift);
  const auto turns = hn::Add(hn::BitCast(integers, shifted), hn::Set(integers, quarters));
  V r = hn::NegMulAdd(n, all(x, 0x1.921fb6p0f), x);  // exact
  r = hn::NegMulAdd(n, all(x, -0x1.777a5cp-25f), r);
  r = hn::NegMulAdd(n, all(x, -0x1.ee59dap-50f), r);
  const V square = hn::Mul(r, r);
  V odd = hn::MulAdd(square, all(x, 2.60831598e-6f), all(x, -1.98106907e-4f));
  odd = hn::MulAdd(square, hn::MulAdd(square, odd, all(x, 8.33307859e-3f)), all(x, -1.66666597e-1f));
  odd = hn::MulAdd(hn::Mul(r, square), odd, r);
  V even = hn::MulAdd(square, all(x, 2.44331571e-5f), all(x, -1.38873163e-3f));
  even = hn::MulAdd(square, hn::MulAdd(square, even, all(x, 4.16666456e-2f)), all(x, -0.5f));
  even = hn::MulAdd(square, even, all(x, 1.0f));
  const hn::DFromV<V> d;
  const auto is_odd_turn = hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(hn::ShiftLeft<31>(turns))));
  const V sign = hn::BitCast(d, hn::ShiftLeft<30>(turns));
  const V y = hn::Xor(hn::IfThenElse(is_odd_turn, even, odd), hn::And(sign, hn::SignBit(d)));
  const V near = quarters == 0 ? hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y) : y;  // zero keeps its sign
  const auto is_near = hn::Le(hn::Abs(x), all(x, kMostTurned));
  return HWY_LIKELY(hn::AllTrue(d, is_near)) ? near : turned_far(x, near, function);
}

template <class V>
HWY_INLINE V sine(V x) {
  return sine_turned<0>(x, std::sin);
}
template <class V>
HWY_INLINE V cosine(V x) {
  return sine_turned<1>(x, std::cos);
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
