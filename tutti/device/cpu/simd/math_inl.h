// Functions of float vectors, inlined into kernels and compiled once a Highway target. All within about 2 units in the last place of the
// true value (tests/device/cpu_math_test.cc has the figures); NaN stays NaN, results overflow to infinity and underflow through the
// denormals. Polynomials are minimax fits, relative to the function, with coefficients rounded to float from the lowest one on.
#if defined(TUTTI_DEVICE_CPU_SIMD_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_DEVICE_CPU_SIMD_MATH_INL_H
#undef TUTTI_DEVICE_CPU_SIMD_MATH_INL_H
#else
#define TUTTI_DEVICE_CPU_SIMD_MATH_INL_H
#endif

#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A vector of one number.
template <class V>
HWY_INLINE V all(V, float value) {
  return hn::Set(hn::DFromV<V>(), value);
}

// The smaller or larger of x and a limit that is a number; NaN stays. x86 returns the second operand when one is NaN, others do not.
template <class V>
HWY_INLINE V at_most(V x, V bound) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Min(bound, x);
#else
  return hn::IfThenElse(hn::Gt(x, bound), bound, x);
#endif
}
template <class V>
HWY_INLINE V at_least(V x, V bound) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Max(bound, x);
#else
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
#endif
}

template <class V>
HWY_INLINE V at_most(V x, float limit) {
  return at_most(x, all(x, limit));
}
template <class V>
HWY_INLINE V at_least(V x, float limit) {
  return at_least(x, all(x, limit));
}

// NaN wins, and +0 is larger than -0.
template <class V>
HWY_INLINE V maximum(V a, V b) {
  const V larger = hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  return hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), larger);
}
template <class V>
HWY_INLINE V minimum(V a, V b) {
  const V smaller = hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  return hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), smaller);
}
template <class V>
HWY_INLINE V relu(V x) {
  return hn::IfThenZeroElse(hn::Le(x, hn::Zero(hn::DFromV<V>())), x);
}

// x = n ln 2 + r with |r| <= ln(2) / 2: `bits` ends in n, `rest` is e^r - 1. |n| must stay below 2^22.
template <class V>
struct SplitExponential {
  using Integers = hn::RebindToSigned<hn::DFromV<V>>;
  hn::VFromD<Integers> bits;
  V rest;
  HWY_INLINE hn::VFromD<Integers> power() const { return hn::Sub(bits, hn::Set(Integers(), 0x4B400000)); }
  // e^x, where 2^n is a normal float.
  HWY_INLINE V value() const { return hn::MulAdd(rest, scale(), scale()); }
  HWY_INLINE V scale() const { return hn::BitCast(hn::DFromV<V>(), hn::Add(hn::ShiftLeft<23>(bits), hn::Set(Integers(), 0x3F800000))); }
};
template <class V>
HWY_INLINE SplitExponential<V> split_exponential(V x) {
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the mantissa.
  const V shift = all(x, 0x1.8p23f);
  const V shifted = hn::MulAdd(x, all(x, 0x1.715476p0f), shift);
  const V n = hn::Sub(shifted, shift);
  V r = hn::NegMulAdd(n, all(x, 0.693359375f), x);  // ln 2 in two parts; the first has 9 bits, so that its product is exact
  r = hn::NegMulAdd(n, all(x, -2.12194440e-4f), r);
  V p = all(x, 0.00138718786f);
  p = hn::MulAdd(p, r, all(x, 0.00836687628f));
  p = hn::MulAdd(p, r, all(x, 0.0416674316f));
  p = hn::MulAdd(p, r, all(x, 0.16666542f));
  p = hn::MulAdd(p, r, all(x, 0.49999997f));
  p = hn::MulAdd(hn::Mul(r, r), p, r);
  return {hn::BitCast(hn::RebindToSigned<hn::DFromV<V>>(), shifted), p};
}

// 2^n for n of the normal range, -126 ... 127.
template <class N>
HWY_INLINE auto power_of_two(N n) {
  const hn::DFromV<N> integers;
  return hn::BitCast(hn::RebindToFloat<decltype(integers)>(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(integers, 127))));
}

template <class V>
HWY_INLINE V exponential(V x) {
  const auto split = split_exponential(at_least(at_most(x, 89.0f), -104.0f));
  // In two factors: 2^128 and the denormals are no floats of the simple form.
  const auto power = split.power(), half = hn::ShiftRight<1>(power);
  const V y = hn::Add(split.rest, all(x, 1.0f));
  return hn::Mul(hn::Mul(y, power_of_two(half)), power_of_two(hn::Sub(power, half)));
}

// e^x for x <= 0, where results that are no normal floats become 0: a third faster.
template <class V>
HWY_INLINE V exponential_of_negative(V x) {
  const auto split = split_exponential(at_least(x, -87.0f));
  return hn::IfThenZeroElse(hn::Lt(x, all(x, -87.0f)), split.value());
}

// e^x - 1 for x <= 88 and above where the result is -1; no overflow.
template <class V>
HWY_INLINE V exponential_minus_one_below_88(V x) {
  const auto split = split_exponential(at_least(x, -40.0f));
  const V scale = split.scale();
  return hn::MulAdd(split.rest, scale, hn::Sub(scale, all(x, 1.0f)));
}

template <class V>
HWY_INLINE V exponential_minus_one(V x) {
  // Beyond 2^64 the one is lost, and e^x is the square of its half.
  const auto beyond = hn::Gt(x, all(x, 80.0f));
  const V y = exponential_minus_one_below_88(hn::IfThenElse(beyond, hn::Mul(at_most(x, 170.0f), all(x, 0.5f)), x));
  return hn::CopySign(hn::IfThenElse(beyond, hn::Mul(y, y), y), x);
}

// A quotient that is not divided yet, so that several share one division.
template <class V>
struct Fraction {
  V above, below;
};

// 1 / (1 + e^-x) for x >= -80. e^-x = 2^n (E - r O) / (E + r O), with even polynomials of r, the part of x that is no multiple of ln 2,
// takes fewer multiplications than a polynomial of r.
template <class V>
HWY_INLINE Fraction<V> logistic_fraction(V x) {
  using Integers = hn::RebindToSigned<hn::DFromV<V>>;
  const V most = at_most(x, 87.0f), shift = all(x, 0x1.8p23f);
  const V shifted = hn::NegMulAdd(most, all(x, 0x1.715476p0f), shift);
  const V n = hn::Sub(shifted, shift);
  V r = hn::MulAdd(n, all(x, 0.693359375f), most);
  r = hn::MulAdd(n, all(x, -2.12194440e-4f), r);
  const V square = hn::Mul(r, r), odd = hn::Add(square, all(x, 60.0716667f));
  const V even = hn::MulAdd(square, all(x, 12.0119371f), all(x, 120.143333f));
  const auto bits = hn::ShiftLeft<23>(hn::BitCast(Integers(), shifted));
  const V scale = hn::BitCast(hn::DFromV<V>(), hn::Add(bits, hn::Set(Integers(), 0x3F800000)));
  const V above = hn::MulAdd(r, odd, even);
  return {above, hn::MulAdd(scale, hn::NegMulAdd(r, odd, even), above)};
}

// Places about 19 / 32 apart whose tanh is a float up to 2^-25 of its last place or less, so that it adds no error, and that float. The
// last tanh is 1, the float nearest to any tanh beyond 9.02.
HWY_ALIGN inline constexpr float tanh_places[16] = {0.0f,        0.593772471f, 1.18762195f, 1.78102589f, 2.37446523f, 2.96877456f,
                                                    3.56228948f, 4.15614271f,  4.74988508f, 5.34373713f, 5.93667603f, 6.53299713f,
                                                    7.12300014f, 7.71675014f,  8.31449986f, 8.90625f};
HWY_ALIGN inline constexpr float tanh_there[16] = {0.0f,         0.532603383f, 0.829839885f, 0.944805384f, 0.982826829f, 0.99473691f,
                                                   0.998391151f, 0.999509156f, 0.999850273f, 0.999954343f, 0.999986053f, 0.999995768f,
                                                   0.999998689f, 0.999999583f, 0.999999881f, 1.0f};

// table[k] of 16, where k is the low four bits of `index`.
template <class D, class I>
HWY_INLINE hn::VFromD<D> look_up(D d, const float* table, I index) {
  const hn::DFromV<I> integers;
  constexpr size_t lanes = hn::MaxLanes(D());
  if constexpr (lanes == 16 || lanes == 8) {
    const auto within = hn::IndicesFromVec(d, hn::And(index, hn::Set(integers, lanes - 1)));
    const auto low = hn::TableLookupLanes(hn::Load(d, table), within);
    if constexpr (lanes == 16) {
      return low;
    } else {
      const auto upper = hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(hn::ShiftLeft<28>(index))));
      return hn::IfThenElse(upper, hn::TableLookupLanes(hn::Load(d, table + lanes), within), low);
    }
  } else {
    return hn::GatherIndex(d, table, hn::And(index, hn::Set(integers, 15)));
  }
}

// tanh(x) for x >= 0, from the tanh at the nearest of those places and that of the way from there, which is a fraction of it.
template <class V>
HWY_INLINE Fraction<V> tanh_fraction(V size) {
  const hn::DFromV<V> d;
  const V x = at_most(size, 9.2f);
  const auto index = hn::BitCast(hn::RebindToSigned<hn::DFromV<V>>(), hn::MulAdd(x, all(x, 1.68421053f), all(x, 0x1.8p23f)));
  const V r = hn::Sub(x, look_up(d, tanh_places, index)), there = look_up(d, tanh_there, index);
  const V square = hn::Mul(r, r);
  const V even = hn::MulAdd(square, all(x, 6.01747322f), all(x, 15.0525141f));
  const V odd = hn::Mul(r, hn::Add(square, all(x, 15.0525141f)));
  return {hn::MulAdd(there, even, odd), hn::MulAdd(there, odd, even)};
}

// y / (1 + e^-x).
template <class V>
HWY_INLINE V over_one_plus_exponential(V y, V x) {
  const auto fraction = logistic_fraction(x);
  const V quotient = hn::Div(hn::Mul(y, fraction.above), fraction.below);
  const auto low = hn::Lt(x, all(x, -80.0f));
  if (HWY_LIKELY(hn::AllFalse(hn::DFromV<V>(), low))) return quotient;
  return hn::IfThenElse(low, hn::Mul(y, exponential(x)), quotient);  // the one is lost, and the quotient may be denormal
}

template <class V>
HWY_INLINE V logistic(V x) {
  return over_one_plus_exponential(all(x, 1.0f), x);
}

template <class V>
HWY_INLINE V tanh(V x) {
  const auto fraction = tanh_fraction(hn::Abs(x));
  return hn::CopySign(hn::Div(fraction.above, fraction.below), x);
}

// tanh(y) / (1 + e^-x) by one division: what a gate lets through.
template <class V>
HWY_INLINE V logistic_times_tanh(V x, V y) {
  const auto gate = logistic_fraction(x), size = tanh_fraction(hn::Abs(y));
  const V quotient = hn::CopySign(hn::Div(hn::Mul(gate.above, size.above), hn::Mul(gate.below, size.below)), y);
  const auto low = hn::Lt(x, all(x, -60.0f));
  if (HWY_LIKELY(hn::AllFalse(hn::DFromV<V>(), low))) return quotient;
  return hn::IfThenElse(low, hn::Mul(logistic(x), tanh(y)), quotient);  // the product below may be infinite
}

// log(1 + f) + k ln 2 for 1 + f of sqrt(1/2) ... sqrt(2).
template <class V>
HWY_INLINE V logarithm_of_parts(V f, V k) {
  V p = all(f, -0.0763643906f);
  p = hn::MulAdd(p, f, all(f, 0.127622172f));
  p = hn::MulAdd(p, f, all(f, -0.131596103f));
  p = hn::MulAdd(p, f, all(f, 0.1420158f));
  p = hn::MulAdd(p, f, all(f, -0.166234091f));
  p = hn::MulAdd(p, f, all(f, 0.200012416f));
  p = hn::MulAdd(p, f, all(f, -0.250008196f));
  p = hn::MulAdd(p, f, all(f, 0.333333313f));
  const V square = hn::Mul(f, f);
  V y = hn::MulAdd(k, all(f, -2.12194440e-4f), hn::Mul(hn::Mul(square, f), p));
  y = hn::NegMulAdd(square, all(f, 0.5f), y);
  return hn::MulAdd(k, all(f, 0.693359375f), hn::Add(y, f));
}

// The logarithm of u where it is 0 or infinite, and NaN elsewhere.
template <class V>
HWY_INLINE V logarithm_of_ends(V u) {
  const V infinity = all(u, std::numeric_limits<float>::infinity());
  const V none = all(u, std::numeric_limits<float>::quiet_NaN());
  const V above = hn::IfThenElse(hn::Eq(u, infinity), infinity, none);
  return hn::IfThenElse(hn::Eq(u, hn::Zero(hn::DFromV<V>())), hn::Neg(infinity), above);
}

template <class V>
HWY_INLINE V log(V x) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const auto denormal = hn::Lt(x, all(x, std::numeric_limits<float>::min()));
  const auto bits = hn::BitCast(integers, hn::IfThenElse(denormal, hn::Mul(x, all(x, 0x1p23f)), x));
  const auto power = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(integers, 0x3F3504F3)));  // of the nearest 2^k, by sqrt(1/2)
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(power))), all(x, 1.0f));
  const V k = hn::Sub(hn::ConvertTo(d, power), hn::IfThenElseZero(denormal, all(x, 23.0f)));
  const auto inside = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, all(x, std::numeric_limits<float>::infinity())));
  return hn::IfThenElse(inside, logarithm_of_parts(f, k), logarithm_of_ends(x));
}

template <class V>
HWY_INLINE V log_plus_one(V x) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const V u = hn::Add(x, all(x, 1.0f));
  const auto power = hn::ShiftRight<23>(hn::Sub(hn::BitCast(integers, u), hn::Set(integers, 0x3F3504F3)));
  // f = (1 + x) 2^-k - 1 with one rounding, and x itself where k = 0; by 2^(2 - k), because 2^-128 is no normal float.
  const V scale = hn::BitCast(d, hn::Sub(hn::Set(integers, 0x40800000), hn::ShiftLeft<23>(power)));
  const V quarter = all(x, 0.25f);
  const V f = hn::MulAdd(hn::Mul(x, quarter), scale, hn::MulSub(quarter, scale, all(x, 1.0f)));
  const V y = logarithm_of_parts(f, hn::ConvertTo(d, power));
  const auto inside = hn::And(hn::Gt(u, hn::Zero(d)), hn::Lt(u, all(x, std::numeric_limits<float>::infinity())));
  const auto tiny = hn::Lt(hn::Abs(x), all(x, 0x1p-25f));
  return hn::IfThenElse(tiny, x, hn::IfThenElse(inside, y, logarithm_of_ends(u)));
}

// By x P(x^2) near zero, by 1 - e^-Q(|x|) further out.
template <class V>
HWY_INLINE V erf(V x) {
  const V square = hn::Mul(x, x);
  V p = all(x, -0.000600379542f);
  p = hn::MulAdd(p, square, all(x, 0.00499585317f));
  p = hn::MulAdd(p, square, all(x, -0.0267685801f));
  p = hn::MulAdd(p, square, all(x, 0.11281877f));
  p = hn::MulAdd(p, square, all(x, -0.376125008f));
  p = hn::MulAdd(p, square, all(x, 0.128379151f));
  const V t = at_most(hn::Abs(x), 4.0f);
  V q = all(x, 1.12299094e-05f);
  q = hn::MulAdd(q, t, all(x, -0.000322793698f));
  q = hn::MulAdd(q, t, all(x, 0.00364242936f));
  q = hn::MulAdd(q, t, all(x, -0.0237620194f));
  q = hn::MulAdd(q, t, all(x, 0.106236845f));
  q = hn::MulAdd(q, t, all(x, 0.635151327f));
  q = hn::MulAdd(q, t, all(x, 0.12864849f));
  const V far = hn::CopySign(exponential_minus_one_below_88(hn::Neg(hn::MulAdd(q, t, t))), x);
  return hn::IfThenElse(hn::Lt(t, all(x, 0.92f)), hn::MulAdd(p, x, x), far);
}

template <class V>
HWY_INLINE V rsqrt(V x) {
  return hn::Div(all(x, 1.0f), hn::Sqrt(x));
}

// The root within one unit in the last place; where an estimate costs less than half of the machine's own root, by one step from it. What
// a number gives does not depend on its neighbours.
template <class V>
HWY_INLINE V root(V x) {
#if HWY_TARGET == HWY_AVX3
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<hn::DFromV<V>> words;
  // From the smallest normal number to the largest; a zero is no exception, as where no gradient has been.
  const auto normal = hn::RebindMask(d, hn::Lt(hn::Sub(hn::BitCast(words, x), hn::Set(words, 0x00800000u)), hn::Set(words, 0x7F000000u)));
  const V inverse = hn::ApproximateReciprocalSqrt(x), near = hn::Mul(x, inverse);
  const V corrected = hn::MulAdd(hn::NegMulAdd(near, near, x), hn::Mul(inverse, hn::Set(d, 0.5f)), near);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Or(normal, hn::Eq(x, hn::Zero(d)))))) return hn::IfThenElseZero(normal, corrected);
  return hn::IfThenElse(normal, corrected, hn::Sqrt(x));
#else
  return hn::Sqrt(x);
#endif
}

template <class V>
HWY_INLINE V silu(V x) {
  return over_one_plus_exponential(x, x);
}

// x / 2 (1 + erf(x / sqrt 2)): x times half of erfc(|x| / sqrt 2) = e^-|x|P(|x|), or its complement. Within 4e-8 of the true value below 1.
template <class V>
HWY_INLINE V gelu(V x) {
  const hn::DFromV<V> d;
  constexpr float most = 5.75f;  // beyond it the complement is 1, and small results become 0
  const V size = hn::Abs(x), t = at_most(size, most);
  V p = all(x, -1.54240340e-07f);
  p = hn::MulAdd(p, t, all(x, 3.56988721e-06f));
  p = hn::MulAdd(p, t, all(x, -3.30703842e-05f));
  p = hn::MulAdd(p, t, all(x, 0.000135564536f));
  p = hn::MulAdd(p, t, all(x, 0.000103607963f));
  p = hn::MulAdd(p, t, all(x, -0.00492527196f));
  p = hn::MulAdd(p, t, all(x, 0.0364150256f));
  p = hn::MulAdd(p, t, all(x, 0.318288714f));
  p = hn::MulAdd(p, t, all(x, 0.797886491f));
  const V half = hn::Mul(split_exponential(hn::Neg(hn::Mul(p, t))).value(), all(x, 0.5f));
  const V tail = hn::IfThenZeroElse(hn::Gt(size, all(x, most)), half);
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(all(x, 1.0f), tail)));
}

// Gelu by tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
template <class V>
HWY_INLINE V gelu_by_tanh(V x) {
  const V cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), all(x, 0.044715f), x);
  const V half = hn::Mul(x, all(x, 0.5f));
  return hn::MulAdd(half, tanh(hn::Mul(cubic, all(x, 0.797884561f))), half);
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
