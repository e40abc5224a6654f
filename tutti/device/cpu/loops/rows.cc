#include "tutti/device/cpu/loops/rows.h"

#include <algorithm>
#include <cmath>

#include "tutti/device/cpu/simd/targets.h"
//
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/loops/rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include "tutti/device/cpu/loops/reduce_inl.h"
#include "tutti/device/cpu/team.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

// Rows at a time: while one waits for its largest element, or for its sum, the others go on.
constexpr size_t group = 4;

// to[i] = map(x[i], i) for vectors; the tail's index is that of its first lane, and `part` says how many lanes count.
template <class Map>
HWY_INLINE void map_row(const float* x, float* to, size_t length, const Map& map) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= length; i += lanes) hn::StoreU(map(hn::LoadU(d, x + i), i, lanes), d, to + i);
  if (i < length) store_part(map(load_part(d, x + i, length - i), i, length - i), d, to + i, length - i);
}

HWY_INLINE float largest(const float* x, size_t length) {
  return reduce_row<LargestOf>(x, length, [](FloatVector v, size_t) HWY_ATTR { return v; });
}

// Some rows that fit in a vector. All are loaded before any is stored: a load would wait for the store of the row before it, whose vector
// reaches into it.
template <size_t count>
HWY_INLINE void softmax_vectors(const float* x, size_t length, float* to) {
  const FloatTag d;
  const auto present = hn::FirstN(d, length);
  FloatVector v[count];
#pragma GCC unroll 8
  for (size_t r = 0; r < count; ++r) v[r] = hn::IfThenElse(present, load_part(d, x + r * length, length), hn::Set(d, LargestOf::identity));
#pragma GCC unroll 8
  for (size_t r = 0; r < count; ++r) v[r] = hn::IfThenElseZero(present, exponential_of_negative(hn::Sub(v[r], hn::MaxOfLanes(d, v[r]))));
#pragma GCC unroll 8
  for (size_t r = 0; r < count; ++r) store_part(hn::Div(v[r], hn::SumOfLanes(d, v[r])), d, to + r * length, length);
}

void softmax_short_rows(const float* x, size_t rows, size_t length, float* to) {
  constexpr size_t many = 8;
  size_t r = 0;
  for (; r + many <= rows; r += many) softmax_vectors<many>(x + r * length, length, to + r * length);
  for (; r < rows; ++r) softmax_vectors<1>(x + r * length, length, to + r * length);
}

// to[i] = e^(x[i] - most); gives their sum.
HWY_INLINE double exponentials(const float* x, size_t length, float most, float* to) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const FloatVector top = hn::Set(d, most);
  double sum = 0;
  for (size_t begin = 0; begin < length; begin += sum_block) {
    const size_t end = std::min(length, begin + sum_block);
    FloatVector a = hn::Zero(d), b = a;
    size_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const FloatVector y = exponential_of_negative(hn::Sub(hn::LoadU(d, x + i), top));
      const FloatVector z = exponential_of_negative(hn::Sub(hn::LoadU(d, x + i + lanes), top));
      hn::StoreU(y, d, to + i);
      hn::StoreU(z, d, to + i + lanes);
      a = hn::Add(a, y);
      b = hn::Add(b, z);
    }
    for (; i < end; i += lanes) {
      const size_t part = std::min(lanes, end - i);
      const FloatVector y = exponential_of_negative(hn::Sub(load_part(d, x + i, part), top));
      store_part(y, d, to + i, part);
      a = hn::Add(a, hn::IfThenElseZero(hn::FirstN(d, part), y));
    }
    sum += fold<SumOf>(hn::Add(a, b));
  }
  return sum;
}

void softmax_rows(const float* x, size_t rows, size_t length, float* to) {
  const FloatTag d;
  if (length <= hn::Lanes(d)) return softmax_short_rows(x, rows, length, to);
  float most[group];
  double sums[group];
  for (size_t begin = 0; begin < rows; begin += group, x += group * length, to += group * length) {
    const size_t count = std::min(group, rows - begin);
    for (size_t r = 0; r < count; ++r) most[r] = largest(x + r * length, length);
    for (size_t r = 0; r < count; ++r) sums[r] = exponentials(x + r * length, length, most[r], to + r * length);
    for (size_t r = 0; r < count; ++r) {
      const FloatVector scale = hn::Set(d, static_cast<float>(1 / sums[r]));
      map_row(to + r * length, to + r * length, length, [scale](FloatVector v, size_t, size_t) HWY_ATTR { return hn::Mul(v, scale); });
    }
  }
}

void log_softmax_rows(const float* x, size_t rows, size_t length, float* to) {
  const FloatTag d;
  for (size_t r = 0; r < rows; ++r, x += length, to += length) {
    const float most = largest(x, length);
    const FloatVector top = hn::Set(d, most);
    const float sum =
        reduce_row<SumOf>(x, length, [top](FloatVector v, size_t) HWY_ATTR { return exponential_of_negative(hn::Sub(v, top)); });
    const FloatVector rest = hn::Set(d, std::log(sum));
    map_row(x, to, length, [top, rest](FloatVector v, size_t, size_t) HWY_ATTR { return hn::Sub(hn::Sub(v, top), rest); });
  }
}

void normalize_rows(const float* x, size_t rows, size_t length, const Normalization& how, float* to) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [d, lanes](const float* from, size_t i, size_t part)
                        HWY_ATTR { return part == lanes ? hn::LoadU(d, from + i) : load_part(d, from + i, part); };
  const auto elements = static_cast<float>(length);
  float means[group], squares[group];
  for (size_t begin = 0; begin < rows; begin += group, x += group * length, to += group * length) {
    const size_t count = std::min(group, rows - begin);
    for (size_t r = 0; r < count; ++r)
      means[r] =
          how.centered ? reduce_row<SumOf>(x + r * length, length, [](FloatVector v, size_t) HWY_ATTR { return v; }) / elements : 0.0f;
    for (size_t r = 0; r < count; ++r) {
      const FloatVector center = hn::Set(d, means[r]);
      squares[r] = reduce_row<SumOf>(x + r * length, length, [center](FloatVector v, size_t) HWY_ATTR {
        const FloatVector y = hn::Sub(v, center);
        return hn::Mul(y, y);
      });
    }
    for (size_t r = 0; r < count; ++r) {
      const FloatVector center = hn::Set(d, means[r]), factor = hn::Set(d, 1 / std::sqrt(squares[r] / elements + how.epsilon));
      map_row(x + r * length, to + r * length, length, [=](FloatVector v, size_t i, size_t part) HWY_ATTR {
        FloatVector y = hn::Mul(hn::Sub(v, center), factor);
        if (how.scale != nullptr) y = hn::Mul(y, load(how.scale, i, part));
        if (how.offset != nullptr) y = hn::Add(y, load(how.offset, i, part));
        return y;
      });
    }
  }
}

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(softmax_rows);
HWY_EXPORT(log_softmax_rows);
HWY_EXPORT(normalize_rows);

void softmax(const float* x, int64_t rows, int64_t length, float* to, int threads) {
  share(rows, threads, [=](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(softmax_rows)
    (x + begin * length, static_cast<size_t>(end - begin), static_cast<size_t>(length), to + begin * length);
  });
}

void log_softmax(const float* x, int64_t rows, int64_t length, float* to, int threads) {
  share(rows, threads, [=](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(log_softmax_rows)
    (x + begin * length, static_cast<size_t>(end - begin), static_cast<size_t>(length), to + begin * length);
  });
}

void normalize(const float* x, int64_t rows, int64_t length, const Normalization& how, float* to, int threads) {
  share(rows, threads, [=](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(normalize_rows)
    (x + begin * length, static_cast<size_t>(end - begin), static_cast<size_t>(length), how, to + begin * length);
  });
}

}  // namespace tutti::cpu
#endif
