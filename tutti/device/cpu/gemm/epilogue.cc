#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/gemm/epilogue.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/device/cpu/gemm/epilogue.h"
#include "tutti/device/cpu/gemm/vectors_inl.h"
#include "tutti/device/cpu/simd/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

HWY_INLINE Vector hard_sigmoid(Vector x) { return hn::Mul(at_most(at_least(hn::Add(x, all(x, 3.0f)), 0.0f), 6.0f), all(x, 1.0f / 6.0f)); }

struct Elu {
  float alpha;
  HWY_INLINE Vector operator()(Vector x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(Tag())), hn::Mul(all(x, alpha), exponential_minus_one(x)), x);
  }
};
struct Gelu {
  HWY_INLINE Vector operator()(Vector x) const { return gelu(x); }
};
struct GeluByTanh {
  HWY_INLINE Vector operator()(Vector x) const { return gelu_by_tanh(x); }
};
struct HardSigmoid {
  HWY_INLINE Vector operator()(Vector x) const { return hard_sigmoid(x); }
};
struct HardSwish {
  HWY_INLINE Vector operator()(Vector x) const { return hn::Mul(x, hard_sigmoid(x)); }
};
struct Sigmoid {
  HWY_INLINE Vector operator()(Vector x) const { return logistic(x); }
};
struct Silu {
  HWY_INLINE Vector operator()(Vector x) const { return silu(x); }
};
struct Tanh {
  HWY_INLINE Vector operator()(Vector x) const { return tanh(x); }
};

template <class Function>
void apply(const Function& function, float* c, int64_t rows, int64_t columns, int64_t c_stride) {
  const Tag d;
  for (int64_t i = 0; i < rows; ++i, c += c_stride) {
    int64_t column = 0;
    for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
      const Vector one = function(hn::LoadU(d, c + column)), other = function(hn::LoadU(d, c + column + kLanes));
      hn::StoreU(one, d, c + column);
      hn::StoreU(other, d, c + column + kLanes);
    }
    for (; column < columns; column += kLanes) store<false>(function(load<false>(c, column, columns)), c, column, columns);
  }
}

void activate_all(const Epilogue& epilogue, float* c, int64_t rows, int64_t columns, int64_t c_stride) {
  switch (epilogue.activation) {
    case Activation::none:
    case Activation::clip:
    case Activation::leaky_relu:
    case Activation::gate: return;
    case Activation::elu: return apply(Elu{epilogue.alpha}, c, rows, columns, c_stride);
    case Activation::gelu: return apply(Gelu{}, c, rows, columns, c_stride);
    case Activation::gelu_by_tanh: return apply(GeluByTanh{}, c, rows, columns, c_stride);
    case Activation::hard_sigmoid: return apply(HardSigmoid{}, c, rows, columns, c_stride);
    case Activation::hard_swish: return apply(HardSwish{}, c, rows, columns, c_stride);
    case Activation::sigmoid: return apply(Sigmoid{}, c, rows, columns, c_stride);
    case Activation::silu: return apply(Silu{}, c, rows, columns, c_stride);
    case Activation::tanh: return apply(Tanh{}, c, rows, columns, c_stride);
  }
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(activate_all);

void activate(const Epilogue& epilogue, float* c, int64_t rows, int64_t columns, int64_t c_stride) {
  const bool joined = columns == c_stride;  // rows that follow each other are one
  HWY_DYNAMIC_DISPATCH(activate_all)(epilogue, c, joined ? 1 : rows, joined ? rows * columns : columns, c_stride);
}

}  // namespace tutti::cpu
#endif
