#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/gemm/depthwise_kernel.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/device/cpu/gemm/depthwise_kernel.h"
#include "tutti/device/cpu/gemm/vectors_inl.h"
#include "tutti/device/cpu/simd/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

// One vector of channels. Columns: the taps across when known, or 0.
template <int Pixels, int Columns, bool Full>
HWY_INLINE void channels_at(const DepthwiseCall& call, int64_t channel) {
  const Tag d;
  const Epilogue& epilogue = *call.epilogue;
  Vector sum[Pixels];
  const Vector bias = epilogue.bias ? load<Full>(epilogue.bias, channel, call.channels) : hn::Zero(d);
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) sum[p] = bias;
  const int64_t columns = Columns ? Columns : call.columns;
  const float* x_row = call.x;
  const float* weights_row = call.weights + channel;
  for (int64_t row = 0; row < call.rows; ++row, x_row += call.x_row, weights_row += call.weights_row) {
#pragma GCC unroll 8
    for (int64_t column = 0; column < columns; ++column) {
      const Vector weights = hn::Load(d, weights_row + column * call.weights_column);
      const float* x = x_row + column * call.x_column;
#pragma GCC unroll 8
      for (int p = 0; p < Pixels; ++p) sum[p] = hn::MulAdd(load<Full>(x + p * call.x_pixel, channel, call.channels), weights, sum[p]);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) {
    if (call.residual) sum[p] = hn::Add(sum[p], load<Full>(call.residual + p * call.channels, channel, call.channels));
    if (epilogue.activation == Activation::clip) sum[p] = at_most(at_least(sum[p], epilogue.low), epilogue.high);
    if (epilogue.activation == Activation::leaky_relu) {
      sum[p] = hn::IfThenElse(hn::Lt(sum[p], hn::Zero(d)), hn::Mul(sum[p], hn::Set(d, epilogue.alpha)), sum[p]);
    }
    store<Full>(sum[p], call.y + p * call.channels, channel, call.channels);
  }
}

template <int Pixels, int Columns>
void all_channels(const DepthwiseCall& call) {
  int64_t channel = 0;
  for (; channel + kLanes <= call.channels; channel += kLanes) channels_at<Pixels, Columns, true>(call, channel);
  if (channel < call.channels) channels_at<Pixels, Columns, false>(call, channel);
}

template <int Pixels>
void depthwise(const DepthwiseCall& call) {
  switch (call.columns) {
    case 3: return all_channels<Pixels, 3>(call);
    case 5: return all_channels<Pixels, 5>(call);
    default: return all_channels<Pixels, 0>(call);
  }
}

const DepthwiseKernels& kernels_for_depthwise() {
  static constexpr DepthwiseKernels table = {
      kLanes, {nullptr, &depthwise<1>, &depthwise<2>, &depthwise<3>, &depthwise<4>, &depthwise<5>, &depthwise<6>}};
  return table;
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(kernels_for_depthwise);

const DepthwiseKernels& depthwise_kernels() { return HWY_DYNAMIC_DISPATCH(kernels_for_depthwise)(); }

}  // namespace tutti::cpu
#endif
