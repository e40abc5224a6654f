#include "tutti/device/cpu/loops/pool.h"

#include <algorithm>
#include <array>

#include "tutti/device/cpu/loops/reduce.h"
#include "tutti/device/cpu/simd/targets.h"
//
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/loops/pool.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include "tutti/device/bytes.h"
#include "tutti/device/cpu/loops/reduce_inl.h"
#include "tutti/device/cpu/team.h"

#ifndef TUTTI_DEVICE_CPU_LOOPS_POOL
#define TUTTI_DEVICE_CPU_LOOPS_POOL
namespace tutti::cpu {

// The places of one output's window that lie inside of the operand: three axes, strides in elements. counts may be 0.
struct PoolWindow {
  std::array<int64_t, 3> counts, strides;
};

}  // namespace tutti::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

template <class F, size_t vectors>
HWY_INLINE void pool_tile(const float* x, const PoolWindow& window, float* to, size_t part) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  FloatVector sum[vectors];
  for (size_t v = 0; v < vectors; ++v) sum[v] = hn::Set(d, F::identity);
  for (int64_t i = 0; i < window.counts[0]; ++i) {
    for (int64_t j = 0; j < window.counts[1]; ++j) {
      const float* from = x + i * window.strides[0] + j * window.strides[1];
      for (int64_t k = 0; k < window.counts[2]; ++k, from += window.strides[2]) {
        for (size_t v = 0; v + 1 < vectors; ++v) sum[v] = F::of(sum[v], hn::LoadU(d, from + v * lanes));
        const float* last = from + (vectors - 1) * lanes;
        sum[vectors - 1] = F::of(sum[vectors - 1], part == lanes ? hn::LoadU(d, last) : load_part(d, last, part));
      }
    }
  }
  for (size_t v = 0; v + 1 < vectors; ++v) hn::StoreU(sum[v], d, to + v * lanes);
  if (part == lanes) return hn::StoreU(sum[vectors - 1], d, to + (vectors - 1) * lanes);
  store_part(sum[vectors - 1], d, to + (vectors - 1) * lanes, part);
}

template <class F>
void pool_channels(const float* x, const PoolWindow& window, size_t channels, float* to) {
  const size_t lanes = hn::Lanes(FloatTag());
  size_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) pool_tile<F, 4>(x + c, window, to + c, lanes);
  for (; c < channels; c += lanes) pool_tile<F, 1>(x + c, window, to + c, std::min(lanes, channels - c));
}

using PoolChannels = void (*)(const float* x, const PoolWindow& window, size_t channels, float* to);

PoolChannels find_pool(Reduce kind) {
  switch (kind) {
    case Reduce::add: return pool_channels<SumOf>;
    case Reduce::multiply: return pool_channels<ProductOf>;
    case Reduce::max: return pool_channels<LargestOf>;
    default: return pool_channels<SmallestOf>;
  }
}

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(find_pool);

namespace {

// Where the window of each output position along an axis begins in the operand, and how many of its places are inside.
struct PoolAxis {
  struct Place {
    int64_t start, count;  // start in elements of the operand
  };
  std::vector<Place> places{{0, 1}};
  int64_t step = 0;  // elements between places of a window
};

PoolAxis pool_axis(const Shape& from, const Shape& to, const Attributes& attributes, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  const int64_t dilation = attributes.ints("window_dilation")[at], low = attributes.ints("low")[at];
  const int64_t size = attributes.ints("window")[at], stride = attributes.ints("strides")[at], inner = from.strides()[at];
  PoolAxis result{.places = {}, .step = dilation * inner};
  for (int64_t o = 0; o < to[axis]; ++o) {
    int64_t first = o * stride - low, skipped = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
    int64_t last = first + (size - 1) * dilation;
    if (last >= from[axis]) last -= (last - from[axis] + dilation) / dilation * dilation;
    first += skipped * dilation;
    result.places.push_back({first * inner, std::max<int64_t>(0, last < first ? 0 : (last - first) / dilation + 1)});
  }
  return result;
}

bool has_window(const Node& node, size_t axis) {
  const Attributes& a = node.attributes;
  return a.ints("window")[axis] != 1 || a.ints("strides")[axis] != 1 || a.ints("low")[axis] != 0 || a.ints("high")[axis] != 0;
}

struct Pool {
  void (*channels_of)(const float*, const PoolWindow&, size_t, float*);
  int64_t batch, image, channels;  // image: elements of the operand for each of the batch
  int threads;
  std::array<PoolAxis, 3> axes;

  void operator()(const Pointers& p) const {
    const int64_t lines = batch * count(0) * count(1);
    share(lines, threads, [&](int64_t begin, int64_t end) { run(p, begin, end); });
  }

  int64_t count(size_t axis) const { return static_cast<int64_t>(axes[axis].places.size()); }

  // Lines along the last axis with a window.
  void run(const Pointers& p, int64_t begin, int64_t end) const {
    const float* x = floats(p.operands[0]);
    float* to = floats(p.results[0]) + begin * count(2) * channels;
    PoolWindow window{{}, {axes[0].step, axes[1].step, axes[2].step}};
    for (int64_t line = begin; line < end; ++line) {
      const auto& outer = axes[0].places[static_cast<size_t>(line / count(1) % count(0))];
      const auto& middle = axes[1].places[static_cast<size_t>(line % count(1))];
      const float* from = x + line / (count(0) * count(1)) * image + outer.start + middle.start;
      window.counts = {outer.count, middle.count, 0};
      for (const auto& place : axes[2].places) {
        window.counts[2] = place.count;
        channels_of(from + place.start, window, static_cast<size_t>(channels), to);
        to += channels;
      }
    }
  }
};

}  // namespace

bool can_pool(const Graph& graph, const Node& node) {
  const Type& type = operand_type(graph, node, 0);
  const int64_t rank = type.shape.rank();
  if (type.dtype != DType::f32 || rank < 2 || has_window(node, static_cast<size_t>(rank) - 1)) return false;
  if (type.shape.elements() == 0 || result_type(graph, node).shape.elements() == 0) return false;
  for (int64_t dilation : node.attributes.ints("base_dilation"))
    if (dilation != 1) return false;
  int64_t first = 0;
  while (first < rank && !has_window(node, static_cast<size_t>(first))) ++first;
  return rank - 1 - first <= 3;
}

Kernel make_pool(const Graph& graph, const Node& node, int threads) {
  const Shape &from = operand_type(graph, node, 0).shape, &to = result_type(graph, node).shape;
  Pool pool{HWY_DYNAMIC_DISPATCH(find_pool)(reduce_kind(node.attributes.text("kind"))), 1, 1, from[from.rank() - 1], threads, {}};
  // Axes before the first window are one batch; axes behind the last window, one row of channels.
  int64_t first = 0, last = from.rank() - 1;
  while (first < last && !has_window(node, static_cast<size_t>(first))) pool.batch *= from[first++];
  while (last > first && !has_window(node, static_cast<size_t>(last) - 1)) pool.channels *= from[--last];
  for (int64_t axis = first; axis < from.rank(); ++axis) pool.image *= from[axis];
  for (int64_t axis = last; axis-- > first;) pool.axes[static_cast<size_t>(axis + 3 - last)] = pool_axis(from, to, node.attributes, axis);
  return {std::move(pool), 0};
}

}  // namespace tutti::cpu
#endif
