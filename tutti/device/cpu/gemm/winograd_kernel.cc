#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/gemm/winograd_kernel.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/device/cpu/gemm/vectors_inl.h"
#include "tutti/device/cpu/gemm/winograd_kernel.h"
#include "tutti/device/cpu/simd/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

// (a - c, b + c, c - b, b - d)
HWY_INLINE void to_plane_row(Vector a, Vector b, Vector c, Vector d, Vector* out, int step) {
  out[0] = hn::Sub(a, c);
  out[step] = hn::Add(b, c);
  out[2 * step] = hn::Sub(c, b);
  out[3 * step] = hn::Sub(b, d);
}

bool to_planes(const float* const* pixels, int64_t channels, float* planes, int64_t step) {
  const Tag d;
  Vector odd = hn::Zero(d);  // 0 times all pixels: NaN once one of them is no number
  for (int64_t channel = 0; channel < channels; channel += kLanes) {
    Vector rows[16], sums[16];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      to_plane_row(hn::LoadU(d, pixels[j] + channel), hn::LoadU(d, pixels[4 + j] + channel), hn::LoadU(d, pixels[8 + j] + channel),
                   hn::LoadU(d, pixels[12 + j] + channel), rows + j, 4);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) to_plane_row(rows[4 * i], rows[4 * i + 1], rows[4 * i + 2], rows[4 * i + 3], sums + 4 * i, 1);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) hn::StoreU(sums[i], d, planes + i * step + channel);
    // Each pixel is in one of the corners.
    odd = hn::MulAdd(hn::Zero(d), sums[0], hn::MulAdd(hn::Zero(d), sums[3], odd));
    odd = hn::MulAdd(hn::Zero(d), sums[12], hn::MulAdd(hn::Zero(d), sums[15], odd));
  }
  return hn::AllTrue(d, hn::Eq(odd, hn::Zero(d)));
}

void from_planes(const float* products, int64_t step, int64_t first, int64_t last, const Epilogue& epilogue, const float* const* residuals,
                 float* const* y) {
  const Tag d;
  // Read once: for the compiler, vectors may be stored over them.
  const Activation activation = epilogue.activation;
  const float* const all_bias = epilogue.bias;
  const float low = epilogue.low, high = epilogue.high, alpha = epilogue.alpha;
  float* const places[4] = {y[0], y[1], y[2], y[3]};
  const float* const others[4] = {residuals[0], residuals[1], residuals[2], residuals[3]};
  for (int64_t filter = first; filter < last; filter += kLanes) {
    Vector rows[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const Vector p0 = hn::LoadU(d, products + j * step + filter), p1 = hn::LoadU(d, products + (4 + j) * step + filter);
      const Vector p2 = hn::LoadU(d, products + (8 + j) * step + filter), p3 = hn::LoadU(d, products + (12 + j) * step + filter);
      rows[0][j] = hn::Add(hn::Add(p0, p1), p2);
      rows[1][j] = hn::Sub(hn::Sub(p1, p2), p3);
    }
    const Vector bias = all_bias ? hn::LoadU(d, all_bias + filter) : hn::Zero(d);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      if (!places[i]) continue;
      const Vector(&row)[4] = rows[i / 2];
      Vector x = i % 2 == 0 ? hn::Add(hn::Add(row[0], row[1]), row[2]) : hn::Sub(hn::Sub(row[1], row[2]), row[3]);
      x = hn::Add(x, bias);
      if (others[i]) x = hn::Add(x, hn::LoadU(d, others[i] + filter));
      if (activation == Activation::clip) x = at_most(at_least(x, low), high);
      if (activation == Activation::leaky_relu) x = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, alpha)), x);
      hn::StoreU(x, d, places[i] + filter);
    }
  }
}

const WinogradKernels& kernels_for_winograd() {
  static constexpr WinogradKernels kernels = {&to_planes, &from_planes};
  return kernels;
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(kernels_for_winograd);

const WinogradKernels& winograd_kernels() { return HWY_DYNAMIC_DISPATCH(kernels_for_winograd)(); }

}  // namespace tutti::cpu
#endif
