#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/gemm/depthwise_kernel.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "tutti/device/cpu/gemm/depthwise_kernel.h"
#include "tutti/device/cpu/gemm/vectors_inl.h"
#include "tutti/device/cpu/simd/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {

template <int Sums>
HWY_INLINE void activate_sums(const Epilogue& epilogue, Vector (&sum)[Sums]) {
  const Tag d;
  if (epilogue.activation == Activation::clip) {
#pragma GCC unroll 16
    for (int i = 0; i < Sums; ++i) sum[i] = at_most(at_least(sum[i], epilogue.low), epilogue.high);
  } else if (epilogue.activation == Activation::leaky_relu) {
#pragma GCC unroll 16
    for (int i = 0; i < Sums; ++i)
      sum[i] = hn::IfThenElse(hn::Lt(sum[i], hn::Zero(d)), hn::Mul(sum[i], hn::Set(d, epilogue.alpha)), sum[i]);
  }
}

// Sums become results. sum: [pixels] of one vector of channels.
template <int Pixels, bool Full>
HWY_INLINE void finish(const DepthwiseCall& call, Vector (&sum)[Pixels], float* y, const float* residual, int64_t channel) {
  const int64_t channels = call.channels;
  if (residual) {
#pragma GCC unroll 8
    for (int p = 0; p < Pixels; ++p) sum[p] = hn::Add(sum[p], load<Full>(residual + p * channels, channel, channels));
  }
  activate_sums(*call.epilogue, sum);
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) store<Full>(sum[p], y + p * channels, channel, channels);
}

template <int Pixels, bool Full>
HWY_INLINE void begin(const DepthwiseCall& call, int64_t channel, Vector (&sum)[Pixels]) {
  const Vector bias = call.epilogue->bias ? load<Full>(call.epilogue->bias, channel, call.channels) : hn::Zero(Tag());
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) sum[p] = bias;
}

template <int Pixels, bool Full>
HWY_INLINE void sum_taps(const DepthwiseCall& call, const DepthwiseTaps& windows, const float* x, float* y, const float* residual,
                         int64_t channel) {
  Vector sum[Pixels];
  begin<Pixels, Full>(call, channel, sum);
  for (const DepthwiseTap* tap = windows.taps; tap != windows.taps + windows.count; ++tap) {
    const Vector weights = hn::LoadU(Tag(), call.weights + tap->weights + channel);
    const float* window = x + tap->x;
#pragma GCC unroll 8
    for (int p = 0; p < Pixels; ++p) sum[p] = hn::MulAdd(load<Full>(window + p * windows.x_pixel, channel, call.channels), weights, sum[p]);
  }
  finish<Pixels, Full>(call, sum, y, residual, channel);
}

// What is loaded for one pixel's window is used for those that overlap it. inside: a bit for each place that the windows cover; all of them
// if Inside.
template <int Pixels, int Columns, int Stride, bool Inside>
HWY_INLINE void sum_rows(const DepthwiseCall& call, const DepthwiseRows& windows, const float* x, uint32_t inside, float* y,
                         const float* residual, int64_t channel) {
  const Tag d;
  Vector sum[Pixels];
  begin<Pixels, true>(call, channel, sum);
  const float *from = x + channel, *row_weights = call.weights + channel;
  for (int64_t row = 0; row < windows.rows; ++row, from += windows.x_row, row_weights += windows.weights_row) {
    Vector weights[Columns];
#pragma GCC unroll 8
    for (int c = 0; c < Columns; ++c) weights[c] = hn::LoadU(d, row_weights + c * windows.weights_column);
    const float* window = from;
#pragma GCC unroll 32
    for (int place = 0; place < (Pixels - 1) * Stride + Columns; ++place, window += call.channels) {
      if (!Inside && (inside >> place & 1) == 0) continue;
      const Vector value = hn::LoadU(d, window);
#pragma GCC unroll 8
      for (int c = 0; c < Columns; ++c) {
        const int p = (place - c) / Stride;
        if (place >= c && (place - c) % Stride == 0 && p < Pixels) add_product(value, weights[c], sum[p]);
      }
    }
  }
  finish<Pixels, true>(call, sum, y, residual, channel);
}

// A row of the image that lies under windows of the first row of the output, the second, or both.
template <int Pixels, int Columns, int Stride, bool Inside, bool First, bool Second>
HWY_INLINE void sum_under_two(const float* window, int64_t channels, const float* first_weights, const float* second_weights,
                              int64_t column, uint32_t inside, Vector (&first)[Pixels], Vector (&second)[Pixels]) {
  const Tag d;
  Vector a[Columns], b[Columns];
#pragma GCC unroll 8
  for (int c = 0; c < Columns; ++c) {
    if constexpr (First) a[c] = hn::LoadU(d, first_weights + c * column);
    if constexpr (Second) b[c] = hn::LoadU(d, second_weights + c * column);
  }
#pragma GCC unroll 32
  for (int place = 0; place < (Pixels - 1) * Stride + Columns; ++place, window += channels) {
    if (!Inside && (inside >> place & 1) == 0) continue;
    const Vector value = hn::LoadU(d, window);
#pragma GCC unroll 8
    for (int c = 0; c < Columns; ++c) {
      const int p = (place - c) / Stride;
      if (place < c || (place - c) % Stride != 0 || p >= Pixels) continue;
      if constexpr (First) add_product(value, a[c], first[p]);
      if constexpr (Second) add_product(value, b[c], second[p]);
    }
  }
}

// The same for two rows of the output, each summed in the same order.
template <int Pixels, int Columns, int Stride, bool Inside>
HWY_INLINE void sum_two_rows(const DepthwiseCall& call, const DepthwiseRows& windows, const float* x, uint32_t inside, float* y,
                             const float* residual, int64_t channel) {
  Vector first[Pixels], second[Pixels];
  begin<Pixels, true>(call, channel, first);
  begin<Pixels, true>(call, channel, second);
  const float *from = x + channel, *weights = call.weights + channel;
  const int64_t back = windows.down * windows.weights_row, column = windows.weights_column;
  int64_t row = 0;
  for (; row < windows.down; ++row, from += windows.x_row, weights += windows.weights_row)
    sum_under_two<Pixels, Columns, Stride, Inside, true, false>(from, call.channels, weights, nullptr, column, inside, first, second);
  for (; row < windows.rows; ++row, from += windows.x_row, weights += windows.weights_row)
    sum_under_two<Pixels, Columns, Stride, Inside, true, true>(from, call.channels, weights, weights - back, column, inside, first, second);
  for (; row < windows.rows + windows.down; ++row, from += windows.x_row, weights += windows.weights_row)
    sum_under_two<Pixels, Columns, Stride, Inside, false, true>(from, call.channels, nullptr, weights - back, column, inside, first,
                                                                second);
  finish<Pixels, true>(call, first, y, residual, channel);
  finish<Pixels, true>(call, second, y + windows.y_row, residual ? residual + windows.y_row : nullptr, channel);
}

// Two rows at once of a kernel of 3 rows and columns. Weights come into registers with the first row of the image that needs them, and stay
// for the second one if there is room. Left, Right: the first or the last of the places that the windows cover is outside. What does not
// change from vector to vector is at hand in locals: for the compiler, results may be stored over the call.
template <int Pixels, int Stride, bool Left, bool Right>
void two_rows_of_3(const DepthwiseCall& call, const DepthwiseRows& windows, const float* x, float* y) {
  const Tag d;
  constexpr int kSums = 2 * Pixels, kPlaces = (Pixels - 1) * Stride + 3;  // the first row's sums, then the second's
  const Epilogue epilogue = *call.epilogue;
  const int64_t channels = call.channels, x_row = windows.x_row, y_row = windows.y_row;
  const int64_t weights_row = windows.weights_row, weights_column = windows.weights_column;
  const float* const all_weights = call.weights;
  // A row outside the image is one pixel of zeros, again and again.
  alignas(64) static constexpr float kZeros[kLanes] = {};
  const int64_t top_pixel = windows.above ? 0 : channels, bottom_pixel = windows.below ? 0 : channels;
  const int64_t computed = call.computed;
  for (int64_t done = 0; done < computed; done += kLanes) {
    const int64_t channel = std::min(done, computed - kLanes);
    Vector weights[3][3];
    const auto load_weights = [&](int r) HWY_ATTR {
#pragma GCC unroll 8
      for (int c = 0; c < 3; ++c) weights[r][c] = load_here(all_weights + channel + r * weights_row + c * weights_column);
    };
    const Vector bias = epilogue.bias ? hn::LoadU(d, epilogue.bias + channel) : hn::Zero(d);
    Vector sum[kSums];
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) sum[i] = bias;
    const float* from = x + channel;
#pragma GCC unroll 8
    for (int row = 0; row < 3 + Stride; ++row, from += x_row) {
      if (row < 3) load_weights(row);
      if (row >= Stride && Stride > 1 && !kManyRegisters) load_weights(row - Stride);
      const int64_t pixel = row == 0 ? top_pixel : row == 2 + Stride ? bottom_pixel : channels;
      const float* window = pixel == 0 ? kZeros : from;
#pragma GCC unroll 32
      for (int place = 0; place < kPlaces; ++place, window += pixel) {
        if ((Left && place == 0) || (Right && place == kPlaces - 1)) continue;
        const Vector value = load_here(window);
#pragma GCC unroll 8
        for (int c = 0; c < 3; ++c) {
          const int p = (place - c) / Stride;
          if (place < c || (place - c) % Stride != 0 || p >= Pixels) continue;
          if (row < 3) add_product(value, weights[row][c], sum[p]);
          if (row >= Stride) add_product(value, weights[row - Stride][c], sum[Pixels + p]);
        }
      }
    }
    activate_sums(epilogue, sum);
    float* to = y + channel;
#pragma GCC unroll 16
    for (int p = 0; p < Pixels; ++p, to += channels) {
      hn::StoreU(sum[p], d, to);
      hn::StoreU(sum[Pixels + p], d, to + y_row);
    }
  }
}

// sum(channel) for vectors of channels; the last one reaches back over the one before it.
template <class Sum>
HWY_INLINE void each_vector(int64_t channels, const Sum& sum) {
  for (int64_t done = 0; done < channels; done += kLanes) sum(std::min(done, channels - kLanes));
}

template <int Pixels>
void taps_tile(const DepthwiseCall& call, const DepthwiseTaps& windows, const float* x, float* y, const float* residual) {
  if (call.channels < kLanes) return sum_taps<Pixels, false>(call, windows, x, y, residual, 0);
  each_vector(call.computed, [&](int64_t channel) HWY_ATTR { sum_taps<Pixels, true>(call, windows, x, y, residual, channel); });
}

template <int Pixels, int Columns, int Stride, bool Inside, bool Two>
void rows_tile(const DepthwiseCall& call, const DepthwiseRows& windows, const float* x, uint32_t inside, float* y, const float* residual) {
  each_vector(call.computed, [&](int64_t channel) HWY_ATTR {
    if constexpr (Two) {
      sum_two_rows<Pixels, Columns, Stride, Inside>(call, windows, x, inside, y, residual, channel);
    } else {
      sum_rows<Pixels, Columns, Stride, Inside>(call, windows, x, inside, y, residual, channel);
    }
  });
}

// Pixels of a tile: as many sums as registers hold; fewer of small kernels, which wait for memory and not for sums.
constexpr int kMostPixels = 8;
constexpr int tile_pixels(int columns, bool two) { return columns == 3 || two ? 6 : kMostPixels; }

// tile(pixel, how many) for all pixels, at most `most` of them; the last two share what is left.
template <class Tile>
HWY_INLINE void each_tile(int64_t pixels, int64_t most, const Tile& tile) {
  for (int64_t pixel = 0; pixel < pixels;) {
    const int64_t left = pixels - pixel, now = left >= 2 * most ? most : left > most ? (left + 1) / 2 : left;
    tile(pixel, now);
    pixel += now;
  }
}

void all_taps(const DepthwiseCall& call, const DepthwiseTaps& windows) {
  constexpr void (*tiles[])(const DepthwiseCall&, const DepthwiseTaps&, const float*, float*, const float*) = {
      nullptr, &taps_tile<1>, &taps_tile<2>, &taps_tile<3>, &taps_tile<4>, &taps_tile<5>, &taps_tile<6>, &taps_tile<7>, &taps_tile<8>};
  each_tile(call.pixels, kMostPixels, [&](int64_t pixel, int64_t now) {
    const int64_t place = pixel * call.channels;
    tiles[now](call, windows, call.x + pixel * windows.x_pixel, call.y + place, call.residual ? call.residual + place : nullptr);
  });
}

using RowsTile = void (*)(const DepthwiseCall&, const DepthwiseRows&, const float*, uint32_t, float*, const float*);

template <int Columns, int Stride, bool Two>
struct RowsTable {
  static constexpr int kPixels = tile_pixels(Columns, Two);
  RowsTile inside[kPixels + 1] = {}, edge[kPixels + 1] = {};  // [pixels]
  template <int Pixels = 1>
  constexpr RowsTable& fill() {
    inside[Pixels] = &rows_tile<Pixels, Columns, Stride, true, Two>;
    edge[Pixels] = &rows_tile<Pixels, Columns, Stride, false, Two>;
    if constexpr (Pixels < kPixels) fill<Pixels + 1>();
    return *this;
  }
};

template <int Columns, int Stride, bool Two = false>
void rows_of(const DepthwiseCall& call, const DepthwiseRows& windows) {
  static constexpr RowsTable<Columns, Stride, Two> table = RowsTable<Columns, Stride, Two>().fill();
  constexpr int64_t kPlaces = (tile_pixels(Columns, Two) - 1) * Stride + Columns;
  static_assert(kPlaces < 32);
  each_tile(call.pixels, tile_pixels(Columns, Two), [&](int64_t pixel, int64_t now) {
    const int64_t place = pixel * call.channels, first = windows.first_column + pixel * Stride;
    const int64_t begin = std::clamp<int64_t>(-first, 0, kPlaces), end = std::clamp<int64_t>(windows.image_columns - first, begin, kPlaces);
    const uint32_t inside = (uint32_t{1} << end) - (uint32_t{1} << begin);
    const uint32_t places = (uint32_t{1} << ((now - 1) * Stride + Columns)) - 1;
    const RowsTile tile = (places & ~inside) == 0 ? table.inside[now] : table.edge[now];
    tile(call, windows, call.x + pixel * Stride * call.channels, inside, call.y + place, call.residual ? call.residual + place : nullptr);
  });
}

void all_rows(const DepthwiseCall& call, const DepthwiseRows& windows) {
  const bool one = windows.stride == 1;
  switch (windows.columns) {
    case 3: return one ? rows_of<3, 1>(call, windows) : rows_of<3, 2>(call, windows);
    case 5: return one ? rows_of<5, 1>(call, windows) : rows_of<5, 2>(call, windows);
    default: return one ? rows_of<7, 1>(call, windows) : rows_of<7, 2>(call, windows);
  }
}

template <int Stride>
struct TwoRowsOf3 {
  static constexpr int kPixels = kManyRegisters ? 6 : 4;
  using Tile = void (*)(const DepthwiseCall&, const DepthwiseRows&, const float*, float*);
  Tile tiles[2][2][kPixels + 1] = {};  // [left][right][pixels]
  template <int Pixels = 1>
  constexpr TwoRowsOf3& fill() {
    tiles[0][0][Pixels] = &two_rows_of_3<Pixels, Stride, false, false>;
    tiles[0][1][Pixels] = &two_rows_of_3<Pixels, Stride, false, true>;
    tiles[1][0][Pixels] = &two_rows_of_3<Pixels, Stride, true, false>;
    tiles[1][1][Pixels] = &two_rows_of_3<Pixels, Stride, true, true>;
    if constexpr (Pixels < kPixels) fill<Pixels + 1>();
    return *this;
  }

  static void run(const DepthwiseCall& call, const DepthwiseRows& windows) {
    static constexpr TwoRowsOf3 table = TwoRowsOf3().fill();
    each_tile(call.pixels, kPixels, [&](int64_t pixel, int64_t now) {
      const int64_t first = windows.first_column + pixel * Stride;
      const bool left = first < 0;
      const bool right = first + (now - 1) * Stride + 3 > windows.image_columns;
      table.tiles[left][right][now](call, windows, call.x + pixel * Stride * call.channels, call.y + pixel * call.channels);
    });
  }
};

void all_two_rows_of_3(const DepthwiseCall& call, const DepthwiseRows& windows) {
  windows.stride == 1 ? TwoRowsOf3<1>::run(call, windows) : TwoRowsOf3<2>::run(call, windows);
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON  // kManyRegisters
void two_rows(const DepthwiseCall& call, const DepthwiseRows& windows) {
  const bool one = windows.stride == 1;
  if (windows.columns == 3) return one ? rows_of<3, 1, true>(call, windows) : rows_of<3, 2, true>(call, windows);
  return one ? rows_of<5, 1, true>(call, windows) : rows_of<5, 2, true>(call, windows);
}
constexpr auto kTwoRows = &two_rows;
#else
constexpr decltype(&all_rows) kTwoRows = nullptr;
#endif

const DepthwiseKernel& kernel_for_depthwise() {
  static constexpr DepthwiseKernel kernel = {kLanes, &all_taps, &all_rows, kTwoRows, &all_two_rows_of_3};
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
