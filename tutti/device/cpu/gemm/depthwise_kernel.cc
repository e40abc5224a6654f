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

// Sums become results. sum: [pixels] of one vector of channels.
template <int Pixels, bool Full>
HWY_INLINE void finish(const DepthwiseCall& call, Vector (&sum)[Pixels], float* y, const float* residual, int64_t channel) {
  const Tag d;
  const Epilogue& epilogue = *call.epilogue;
  const int64_t channels = call.channels;
  if (residual) {
#pragma GCC unroll 8
    for (int p = 0; p < Pixels; ++p) sum[p] = hn::Add(sum[p], load<Full>(residual + p * channels, channel, channels));
  }
  if (epilogue.activation == Activation::clip) {
#pragma GCC unroll 8
    for (int p = 0; p < Pixels; ++p) sum[p] = at_most(at_least(sum[p], epilogue.low), epilogue.high);
  } else if (epilogue.activation == Activation::leaky_relu) {
#pragma GCC unroll 8
    for (int p = 0; p < Pixels; ++p) {
      sum[p] = hn::IfThenElse(hn::Lt(sum[p], hn::Zero(d)), hn::Mul(sum[p], hn::Set(d, epilogue.alpha)), sum[p]);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) store<Full>(sum[p], y + p * channels, channel, channels);
}

// Any taps.
template <int Pixels, bool Full>
HWY_INLINE void any_taps(const DepthwiseCall& call, const float* x, float* y, const float* residual, int64_t channel) {
  const Tag d;
  const Vector bias = call.epilogue->bias ? load<Full>(call.epilogue->bias, channel, call.channels) : hn::Zero(d);
  Vector sum[Pixels];
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) sum[p] = bias;
  const DepthwiseTap* last = call.taps + call.tap_count;
  for (const DepthwiseTap* tap = call.taps; tap != last; ++tap) {
    const Vector weights = hn::Load(d, call.weights + tap->weights + channel);
    const float* window = x + tap->x;
#pragma GCC unroll 8
    for (int p = 0; p < Pixels; ++p) sum[p] = hn::MulAdd(load<Full>(window + p * call.x_pixel, channel, call.channels), weights, sum[p]);
  }
  finish<Pixels, Full>(call, sum, y, residual, channel);
}

// Rows of Columns neighbouring taps: what is loaded for one pixel's window is used for those that overlap it.
template <int Pixels, int Columns, int Stride>
HWY_INLINE void whole_rows(const DepthwiseCall& call, const float* x, float* y, const float* residual, int64_t channel) {
  const Tag d;
  const Vector bias = call.epilogue->bias ? hn::LoadU(d, call.epilogue->bias + channel) : hn::Zero(d);
  Vector sum[Pixels];
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) sum[p] = bias;
  const DepthwiseTap* last = call.taps + call.tap_count;
  for (const DepthwiseTap* tap = call.taps; tap != last; tap += Columns) {
    Vector weights[Columns];
#pragma GCC unroll 8
    for (int c = 0; c < Columns; ++c) weights[c] = hn::Load(d, call.weights + tap[c].weights + channel);
    const float* window = x + tap->x + channel;
#pragma GCC unroll 32
    for (int place = 0; place < (Pixels - 1) * Stride + Columns; ++place, window += call.channels) {
      const Vector value = hn::LoadU(d, window);
#pragma GCC unroll 8
      for (int c = 0; c < Columns; ++c) {
        const int p = (place - c) / Stride;
        if (place >= c && (place - c) % Stride == 0 && p < Pixels) sum[p] = hn::MulAdd(value, weights[c], sum[p]);
      }
    }
  }
  finish<Pixels, true>(call, sum, y, residual, channel);
}

template <int Pixels, int Columns, int Stride>
HWY_INLINE int64_t whole_vectors(const DepthwiseCall& call, const float* x, float* y, const float* residual) {
  int64_t channel = 0;
  for (; channel + kLanes <= call.channels; channel += kLanes) {
    if constexpr (Columns == 0) {
      any_taps<Pixels, true>(call, x, y, residual, channel);
    } else {
      whole_rows<Pixels, Columns, Stride>(call, x, y, residual, channel);
    }
  }
  return channel;
}

template <int Pixels>
void tile(const DepthwiseCall& call, const float* x, float* y, const float* residual) {
  int64_t channel = 0;  // of the first that is left
  if (call.columns == 3 && call.stride == 1) {
    channel = whole_vectors<Pixels, 3, 1>(call, x, y, residual);
  } else if (call.columns == 3 && call.stride == 2) {
    channel = whole_vectors<Pixels, 3, 2>(call, x, y, residual);
  } else if (call.columns == 5 && call.stride == 1) {
    channel = whole_vectors<Pixels, 5, 1>(call, x, y, residual);
  } else if (call.columns == 5 && call.stride == 2) {
    channel = whole_vectors<Pixels, 5, 2>(call, x, y, residual);
  } else {
    channel = whole_vectors<Pixels, 0, 1>(call, x, y, residual);
  }
  if (channel < call.channels) any_taps<Pixels, false>(call, x, y, residual, channel);
}

void depthwise_pixels(const DepthwiseCall& call) {
  constexpr int64_t kPixels = 6;
  constexpr void (*tiles[])(const DepthwiseCall&, const float*, float*, const float*) = {nullptr,  &tile<1>, &tile<2>, &tile<3>,
                                                                                         &tile<4>, &tile<5>, &tile<6>};
  for (int64_t pixel = 0; pixel < call.pixels;) {
    const int64_t left = call.pixels - pixel;
    const int64_t now = left >= 2 * kPixels ? kPixels : left > kPixels ? (left + 1) / 2 : left;
    const int64_t place = pixel * call.channels;
    tiles[now](call, call.x + pixel * call.x_pixel, call.y + place, call.residual ? call.residual + place : nullptr);
    pixel += now;
  }
}

const DepthwiseKernel& kernel_for_depthwise() {
  static constexpr DepthwiseKernel kernel = {kLanes, &depthwise_pixels};
  return kernel;
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(kernel_for_depthwise);

const DepthwiseKernel& depthwise_kernel() { return HWY_DYNAMIC_DISPATCH(kernel_for_depthwise)(); }

}  // namespace tutti::cpu
#endif
