#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/gemm/row_dots.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "tutti/device/cpu/gemm/aligned.h"
#include "tutti/device/cpu/gemm/row_dots.h"
#include "tutti/device/cpu/gemm/vectors_inl.h"
#include "tutti/device/cpu/simd/math_inl.h"
#include "tutti/device/cpu/team.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

// Dot products of Rows rows, in an order that depends on the depth alone.
template <int Rows>
HWY_INLINE void dot_some(const float* a, int64_t a_stride, const float* b, int64_t depth, float bias, float* c) {
  const Tag d;
  Vector even[Rows], odd[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) even[i] = odd[i] = hn::Zero(d);
  int64_t k = 0;
  for (; k + 2 * kLanes <= depth; k += 2 * kLanes) {
    const Vector first = hn::Load(d, b + k), second = hn::Load(d, b + k + kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      even[i] = hn::MulAdd(hn::LoadU(d, a + i * a_stride + k), first, even[i]);
      odd[i] = hn::MulAdd(hn::LoadU(d, a + i * a_stride + k + kLanes), second, odd[i]);
    }
  }
  for (; k < depth; k += kLanes) {
    const Vector first = hn::Load(d, b + k);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) even[i] = hn::MulAdd(load<false>(a + i * a_stride, k, depth), first, even[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) c[i] = bias + hn::GetLane(hn::SumOfLanes(d, hn::Add(even[i], odd[i])));
}

void dot_rows(int64_t rows, const float* a, int64_t a_stride, const float* b, int64_t depth, const Epilogue& epilogue, float* c) {
  const Tag d;
  const float bias = epilogue.bias ? *epilogue.bias : 0;
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) dot_some<4>(a + row * a_stride, a_stride, b, depth, bias, c + row);
  for (; row < rows; ++row) dot_some<1>(a + row * a_stride, a_stride, b, depth, bias, c + row);
  if (epilogue.residual)
    for (row = 0; row < rows; ++row) c[row] += epilogue.residual[row * epilogue.residual_stride];
  const bool clips = epilogue.activation == Activation::clip, leaks = epilogue.activation == Activation::leaky_relu;
  for (row = 0; (clips || leaks) && row < rows; row += kLanes) {
    Vector x = load<false>(c, row, rows);
    if (clips)
      x = at_most(at_least(x, epilogue.low), epilogue.high);
    else
      x = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, epilogue.alpha)), x);
    store<false>(x, c, row, rows);
  }
}

}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(dot_rows);

int64_t padded_size(int64_t depth) {
  constexpr int64_t widest = 16;  // floats of a vector
  return (depth + widest - 1) / widest * widest;
}

void pad_column(const float* from, int64_t depth, int64_t stride, float* place) {
  for (int64_t k = 0; k < depth; ++k) place[k] = from[k * stride];
  std::fill(place + depth, place + padded_size(depth), 0.0f);
}

PaddedColumns::PaddedColumns(const float* from, int64_t depth, int64_t stride, int64_t count, int64_t step)
    : storage_(aligned_floats(count * cpu::padded_size(depth))), depth_(depth), count_(count), padded_(cpu::padded_size(depth)) {
  for (int64_t i = 0; i < count; ++i) pad_column(from + i * step, depth, stride, storage_.get() + i * padded_);
}

void row_dots(int64_t rows, const float* a, int64_t a_stride, const float* b, int64_t depth, const Epilogue& epilogue, float* c) {
  HWY_DYNAMIC_DISPATCH(dot_rows)(rows, a, a_stride, b, depth, epilogue, c);
  if (!epilogue.in_registers()) activate(epilogue, c, 1, rows, rows);
}

void row_dots(int64_t rows, const float* a, int64_t a_stride, const PaddedColumns& b, const Epilogue& epilogue, float* c, int threads) {
  share(rows, threads, [&](int64_t first, int64_t last) {
    row_dots(last - first, a + first * a_stride, a_stride, b.data(), b.depth(), epilogue.from_row(first), c + first);
  });
}

void row_dots(int64_t rows, const float* a, int64_t a_stride, int64_t a_step, const PaddedColumns& b, const Epilogue& epilogue, float* c,
              int threads) {
  share(b.count(), threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      row_dots(rows, a + i * a_step, a_stride, b.data(i), b.depth(), epilogue.moved(i, i * rows * epilogue.residual_stride), c + i * rows);
    }
  });
}

}  // namespace tutti::cpu
#endif
