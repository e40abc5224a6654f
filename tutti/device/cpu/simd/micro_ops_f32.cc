#include "tutti/device/cpu/simd/micro_ops_f32.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "tutti/device/cpu/simd/targets.h"
//
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/simd/micro_ops_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include "tutti/device/cpu/simd/math_inl.h"
#include "tutti/device/cpu/simd/parts_inl.h"
#include "tutti/device/cpu/simd/sine_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

using Floats = hn::ScalableTag<float>;
using Bytes = hn::Rebind<uint8_t, Floats>;  // as many bools as a vector has floats
using Words = hn::RebindToSigned<Floats>;

// A stream of floats: `count` of them, or one that stands for all.
template <bool one>
struct Stream {
  explicit Stream(const std::byte* data) : from(reinterpret_cast<const float*>(data)) {}
  HWY_INLINE hn::VFromD<Floats> load(size_t i) const { return hn::LoadU(Floats(), from + i); }
  HWY_INLINE hn::VFromD<Floats> load_part(size_t i, size_t count) const { return HWY_NAMESPACE::load_part(Floats(), from + i, count); }
  const float* from;
};
template <>
struct Stream<true> {
  explicit Stream(const std::byte* data) : value(*reinterpret_cast<const float*>(data)) {}
  HWY_INLINE hn::VFromD<Floats> load(size_t) const { return hn::Set(Floats(), value); }
  HWY_INLINE hn::VFromD<Floats> load_part(size_t, size_t) const { return hn::Set(Floats(), value); }
  const float value;
};

template <class F, unsigned scalars, size_t... k>
HWY_INLINE void map_streams(const std::byte* const* operands, std::byte* result, int64_t count, std::index_sequence<k...>) {
  const std::tuple<Stream<(scalars >> k & 1) != 0>...> streams{operands[k]...};
  auto* to = reinterpret_cast<float*>(result);
  const size_t n = static_cast<size_t>(count), lanes = hn::Lanes(Floats());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::of(std::get<k>(streams).load(i)...), Floats(), to + i);
  if (i < n) store_part(F::of(std::get<k>(streams).load_part(i, n - i)...), Floats(), to + i, n - i);
}

// F::of so many streams; those named by a bit of `scalars` are one element.
template <class F, size_t streams, unsigned scalars = 0>
void map(const std::byte* const* operands, std::byte* result, int64_t count) {
  map_streams<F, scalars>(operands, result, count, std::make_index_sequence<streams>());
}
template <class F>
constexpr MicroOp unary = map<F, 1>;
template <class F, unsigned scalars>
constexpr MicroOp binary = map<F, 2, scalars>;
template <class F, unsigned scalars>
constexpr MicroOp ternary = map<F, 3, scalars>;

// Masks as bools of one byte, 0 or 1.
template <class M>
HWY_INLINE hn::VFromD<Bytes> bools(M mask) {
  return hn::DemoteTo(Bytes(), hn::IfThenElseZero(hn::RebindMask(Words(), mask), hn::Set(Words(), 1)));
}

template <class F, unsigned scalars>
void compare(const std::byte* const* operands, std::byte* result, int64_t count) {
  const Stream<(scalars & 1) != 0> a(operands[0]);
  const Stream<(scalars & 2) != 0> b(operands[1]);
  auto* to = reinterpret_cast<uint8_t*>(result);
  const size_t n = static_cast<size_t>(count), lanes = hn::Lanes(Floats());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(bools(F::of(a.load(i), b.load(i))), Bytes(), to + i);
  if (i < n) store_part(bools(F::of(a.load_part(i, n - i), b.load_part(i, n - i))), Bytes(), to + i, n - i);
}

HWY_INLINE auto mask_of(hn::VFromD<Bytes> bytes) {
  return hn::RebindMask(Floats(), hn::Gt(hn::PromoteTo(Words(), bytes), hn::Zero(Words())));
}

template <unsigned scalars>
void select(const std::byte* const* operands, std::byte* result, int64_t count) {
  const auto* predicate = reinterpret_cast<const uint8_t*>(operands[0]);
  const Stream<(scalars & 2) != 0> a(operands[1]);
  const Stream<(scalars & 4) != 0> b(operands[2]);
  auto* to = reinterpret_cast<float*>(result);
  const size_t n = static_cast<size_t>(count), lanes = hn::Lanes(Floats());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::IfThenElse(mask_of(hn::LoadU(Bytes(), predicate + i)), a.load(i), b.load(i)), Floats(), to + i);
  if (i == n) return;
  const auto mask = mask_of(load_part(Bytes(), predicate + i, n - i));
  store_part(hn::IfThenElse(mask, a.load_part(i, n - i), b.load_part(i, n - i)), Floats(), to + i, n - i);
}

// Bools as 0 and 1.
void from_bools(const std::byte* const* operands, std::byte* result, int64_t count) {
  const auto* from = reinterpret_cast<const uint8_t*>(operands[0]);
  auto* to = reinterpret_cast<float*>(result);
  const size_t n = static_cast<size_t>(count), lanes = hn::Lanes(Floats());
  const auto one = hn::Set(Floats(), 1.0f);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::IfThenElseZero(mask_of(hn::LoadU(Bytes(), from + i)), one), Floats(), to + i);
  if (i < n) store_part(hn::IfThenElseZero(mask_of(load_part(Bytes(), from + i, n - i)), one), Floats(), to + i, n - i);
}
MicroOp find_from_bools() { return from_bools; }

using V = hn::VFromD<Floats>;

struct Absolute {
  static HWY_INLINE V of(V x) { return hn::Abs(x); }
};
struct Negated {
  static HWY_INLINE V of(V x) { return hn::Neg(x); }
};
struct SignedOne {
  // Zeros keep their sign, NaN stays.
  static HWY_INLINE V of(V x) {
    const auto sized = hn::Gt(hn::Abs(x), hn::Zero(Floats()));
    return hn::IfThenElse(sized, hn::CopySign(hn::Set(Floats(), 1.0f), x), x);
  }
};
struct Exponential {
  static HWY_INLINE V of(V x) { return exponential(x); }
};
struct ExponentialMinusOne {
  static HWY_INLINE V of(V x) { return exponential_minus_one(x); }
};
struct Log {
  static HWY_INLINE V of(V x) { return log(x); }
};
struct LogPlusOne {
  static HWY_INLINE V of(V x) { return log_plus_one(x); }
};
struct Logistic {
  static HWY_INLINE V of(V x) { return logistic(x); }
};
struct Sqrt {
  static HWY_INLINE V of(V x) { return hn::Sqrt(x); }
};
struct Rsqrt {
  static HWY_INLINE V of(V x) { return rsqrt(x); }
};
struct Ceil {
  static HWY_INLINE V of(V x) { return hn::Ceil(x); }
};
struct Floor {
  static HWY_INLINE V of(V x) { return hn::Floor(x); }
};
struct Round {
  static HWY_INLINE V of(V x) { return hn::Round(x); }
};
struct Tanh {
  static HWY_INLINE V of(V x) { return tanh(x); }
};
struct Erf {
  static HWY_INLINE V of(V x) { return erf(x); }
};
struct Sine {
  static HWY_INLINE V of(V x) { return sine(x); }
};
struct Cosine {
  static HWY_INLINE V of(V x) { return cosine(x); }
};
struct Square {
  static HWY_INLINE V of(V x) { return hn::Mul(x, x); }
};
struct Cube {
  static HWY_INLINE V of(V x) { return hn::Mul(hn::Mul(x, x), x); }
};
struct Inverse {
  static HWY_INLINE V of(V x) { return hn::Div(hn::Set(Floats(), 1.0f), x); }
};
// x^(1/2) differs from the root at -0 (it is +0) and -infinity (it is +infinity).
struct PowerOfHalf {
  static HWY_INLINE V of(V x) {
    const V infinity = hn::Set(Floats(), std::numeric_limits<float>::infinity());
    return hn::IfThenElse(hn::Eq(x, hn::Neg(infinity)), infinity, hn::Sqrt(hn::Add(x, hn::Zero(Floats()))));
  }
};
struct PowerOfMinusHalf {
  static HWY_INLINE V of(V x) { return hn::Div(hn::Set(Floats(), 1.0f), PowerOfHalf::of(x)); }
};

struct Sum {
  static HWY_INLINE V of(V a, V b) { return hn::Add(a, b); }
};
struct Difference {
  static HWY_INLINE V of(V a, V b) { return hn::Sub(a, b); }
};
struct Product {
  static HWY_INLINE V of(V a, V b) { return hn::Mul(a, b); }
};
struct Quotient {
  static HWY_INLINE V of(V a, V b) { return hn::Div(a, b); }
};
struct Maximum {
  static HWY_INLINE V of(V a, V b) { return maximum(a, b); }
};
struct Minimum {
  static HWY_INLINE V of(V a, V b) { return minimum(a, b); }
};

struct Relu {
  static HWY_INLINE V of(V x) { return relu(x); }
};
// The same where b is neither zero nor NaN.
struct Floored {
  static HWY_INLINE V of(V a, V b) { return at_least(a, b); }
};
struct Capped {
  static HWY_INLINE V of(V a, V b) { return at_most(a, b); }
};

struct MultiplyAdd {
  static HWY_INLINE V of(V a, V b, V c) { return hn::MulAdd(a, b, c); }
};
struct MultiplyAddRelu {
  static HWY_INLINE V of(V a, V b, V c) { return relu(hn::MulAdd(a, b, c)); }
};
struct Toward {
  static HWY_INLINE V of(V a, V b, V c) { return hn::MulAdd(hn::Sub(b, a), c, a); }
};
struct TowardSquare {
  static HWY_INLINE V of(V a, V b, V c) { return hn::MulAdd(hn::MulSub(b, b, a), c, a); }
};
struct MinusQuotient {
  static HWY_INLINE V of(V a, V b, V c) { return hn::Sub(a, hn::Div(b, c)); }
};
struct Descent {
  static HWY_INLINE V of(V a, V b, V x, V c, V e) { return hn::Sub(a, hn::Div(hn::Mul(b, c), hn::Add(root(x), e))); }
};
struct RootPlus {
  static HWY_INLINE V of(V x, V b) { return hn::Add(root(x), b); }
};
struct AddRelu {
  static HWY_INLINE V of(V a, V b) { return relu(hn::Add(a, b)); }
};
struct LeakyRelu {
  static HWY_INLINE V of(V x, V slope) { return hn::IfThenElse(hn::Ge(x, hn::Zero(Floats())), x, hn::Mul(x, slope)); }
};
struct Gated {
  static HWY_INLINE V of(V a, V b) { return over_one_plus_exponential(b, a); }
};
struct GatedTanh {
  static HWY_INLINE V of(V a, V b) { return logistic_times_tanh(a, b); }
};
struct GatedSum {
  static HWY_INLINE V of(V a, V b, V c, V d) { return hn::Add(over_one_plus_exponential(b, a), logistic_times_tanh(c, d)); }
};
struct Silu {
  static HWY_INLINE V of(V x) { return silu(x); }
};
struct Gelu {
  static HWY_INLINE V of(V x) { return gelu(x); }
};
struct HardSilu {
  static HWY_INLINE V of(V x) {
    const V gate = at_most(relu(hn::Add(x, hn::Set(Floats(), 3.0f))), 6.0f);
    return hn::Mul(x, hn::Div(gate, hn::Set(Floats(), 6.0f)));
  }
};

struct Equal {
  static HWY_INLINE auto of(V a, V b) { return hn::Eq(a, b); }
};
struct Unequal {
  // Highway's Ne is false for NaN on x86.
  static HWY_INLINE auto of(V a, V b) { return hn::Not(hn::Eq(a, b)); }
};
struct AtLeast {
  static HWY_INLINE auto of(V a, V b) { return hn::Ge(a, b); }
};
struct Above {
  static HWY_INLINE auto of(V a, V b) { return hn::Gt(a, b); }
};
struct AtMost {
  static HWY_INLINE auto of(V a, V b) { return hn::Le(a, b); }
};
struct Below {
  static HWY_INLINE auto of(V a, V b) { return hn::Lt(a, b); }
};

MicroOp find_unary(Op op) {
  switch (op) {
    case Op::abs: return unary<Absolute>;
    case Op::negate: return unary<Negated>;
    case Op::sign: return unary<SignedOne>;
    case Op::exponential: return unary<Exponential>;
    case Op::exponential_minus_one: return unary<ExponentialMinusOne>;
    case Op::log: return unary<Log>;
    case Op::log_plus_one: return unary<LogPlusOne>;
    case Op::logistic: return unary<Logistic>;
    case Op::sqrt: return unary<Sqrt>;
    case Op::rsqrt: return unary<Rsqrt>;
    case Op::ceil: return unary<Ceil>;
    case Op::floor: return unary<Floor>;
    case Op::round_nearest_even: return unary<Round>;
    case Op::tanh: return unary<Tanh>;
    case Op::erf: return unary<Erf>;
    case Op::sine: return unary<Sine>;
    case Op::cosine: return unary<Cosine>;
    default: return nullptr;
  }
}

// Scalars may stand on the right or on the left; two of them are a scalar program, of no interest here.
template <class F>
MicroOp with_scalars(unsigned scalars) {
  constexpr MicroOp forms[] = {binary<F, 0>, binary<F, 1>, binary<F, 2>};
  return scalars < 3 ? forms[scalars] : nullptr;
}

template <class F>
MicroOp compare_with_scalars(unsigned scalars) {
  constexpr MicroOp forms[] = {compare<F, 0>, compare<F, 1>, compare<F, 2>};
  return scalars < 3 ? forms[scalars] : nullptr;
}

MicroOp find_binary(Op op, unsigned scalars) {
  switch (op) {
    case Op::add: return with_scalars<Sum>(scalars);
    case Op::subtract: return with_scalars<Difference>(scalars);
    case Op::multiply: return with_scalars<Product>(scalars);
    case Op::divide: return with_scalars<Quotient>(scalars);
    case Op::maximum: return with_scalars<Maximum>(scalars);
    case Op::minimum: return with_scalars<Minimum>(scalars);
    default: return nullptr;
  }
}

MicroOp find_compare(std::string_view direction, unsigned scalars) {
  if (direction == "EQ") return compare_with_scalars<Equal>(scalars);
  if (direction == "NE") return compare_with_scalars<Unequal>(scalars);
  if (direction == "GE") return compare_with_scalars<AtLeast>(scalars);
  if (direction == "GT") return compare_with_scalars<Above>(scalars);
  if (direction == "LE") return compare_with_scalars<AtMost>(scalars);
  return compare_with_scalars<Below>(scalars);
}

MicroOp find_select(unsigned scalars) {
  switch (scalars) {
    case 0: return select<0>;
    case 2: return select<2>;
    case 4: return select<4>;
    case 6: return select<6>;
    default: return nullptr;
  }
}

template <class F>
MicroOp multiply_add_with_scalars(unsigned scalars) {
  constexpr MicroOp forms[] = {ternary<F, 0>, ternary<F, 1>, ternary<F, 2>, ternary<F, 3>, ternary<F, 4>, ternary<F, 5>, ternary<F, 6>};
  return scalars < 7 ? forms[scalars] : nullptr;
}

// A scalar stands last, or nowhere.
template <class F>
MicroOp with_last_scalar(unsigned scalars) {
  return scalars == 0 ? ternary<F, 0> : scalars == 4 ? ternary<F, 4> : nullptr;
}

MicroOp find_composite_f32(Composite composite, unsigned scalars) {
  switch (composite) {
    case Composite::multiply_add: return multiply_add_with_scalars<MultiplyAdd>(scalars);
    case Composite::multiply_add_relu: return multiply_add_with_scalars<MultiplyAddRelu>(scalars);
    case Composite::add_relu: return with_scalars<AddRelu>(scalars);
    case Composite::toward: return with_last_scalar<Toward>(scalars);
    case Composite::toward_square: return with_last_scalar<TowardSquare>(scalars);
    case Composite::minus_quotient: return with_last_scalar<MinusQuotient>(scalars);
    case Composite::descent: return scalars == 24 ? map<Descent, 5, 24> : nullptr;  // c and e
    case Composite::root_plus: return scalars == 2 ? binary<RootPlus, 2> : nullptr;
    case Composite::leaky_relu: return scalars == 2 ? binary<LeakyRelu, 2> : nullptr;
    case Composite::gated_sum: return scalars == 0 ? map<GatedSum, 4> : nullptr;
    case Composite::gated_tanh: return scalars == 0 ? binary<GatedTanh, 0> : nullptr;
    case Composite::gated: return scalars == 0 ? binary<Gated, 0> : nullptr;
    case Composite::silu: return scalars == 0 ? unary<Silu> : nullptr;
    case Composite::gelu: return scalars == 0 ? unary<Gelu> : nullptr;
    case Composite::hard_silu: return scalars == 0 ? unary<HardSilu> : nullptr;
  }
  return nullptr;
}

MicroOp find_with_constant(Op op, float right) {
  if (op == Op::maximum && right == 0 && !std::signbit(right)) return unary<Relu>;
  if (op == Op::maximum && right != 0 && !std::isnan(right)) return binary<Floored, 2>;
  if (op == Op::minimum && right != 0 && !std::isnan(right)) return binary<Capped, 2>;
  if (op != Op::power) return nullptr;
  if (right == 2) return unary<Square>;
  if (right == 3) return unary<Cube>;
  if (right == 0.5f) return unary<PowerOfHalf>;
  if (right == -0.5f) return unary<PowerOfMinusHalf>;
  if (right == -1) return unary<Inverse>;
  return nullptr;
}

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(find_unary);
HWY_EXPORT(find_binary);
HWY_EXPORT(find_compare);
HWY_EXPORT(find_select);
HWY_EXPORT(find_from_bools);
HWY_EXPORT(find_with_constant);
HWY_EXPORT(find_composite_f32);

MicroOp find_unary_f32(Op op) { return HWY_DYNAMIC_DISPATCH(find_unary)(op); }
MicroOp find_binary_f32(Op op, unsigned scalars) { return HWY_DYNAMIC_DISPATCH(find_binary)(op, scalars); }
MicroOp find_compare_f32(std::string_view direction, unsigned scalars) { return HWY_DYNAMIC_DISPATCH(find_compare)(direction, scalars); }
MicroOp find_select_f32(unsigned scalars) { return HWY_DYNAMIC_DISPATCH(find_select)(scalars); }
MicroOp find_bools_to_f32() { return HWY_DYNAMIC_DISPATCH(find_from_bools)(); }
MicroOp find_composite(Composite composite, unsigned scalars) { return HWY_DYNAMIC_DISPATCH(find_composite_f32)(composite, scalars); }
MicroOp find_micro_op_with_constant(Op op, float right) { return HWY_DYNAMIC_DISPATCH(find_with_constant)(op, right); }

}  // namespace tutti::cpu
#endif
