#include "tutti/device/cpu/loops/pool_gradient.h"

#include <algorithm>

#include "tutti/device/cpu/loops/pool_axes.h"
#include "tutti/device/cpu/simd/targets.h"
//
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/loops/pool_gradient.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include "tutti/device/bytes.h"
#include "tutti/device/cpu/loops/reduce_inl.h"
#include "tutti/device/cpu/team.h"

#ifndef TUTTI_DEVICE_CPU_LOOPS_POOL_GRADIENT
#define TUTTI_DEVICE_CPU_LOOPS_POOL_GRADIENT
namespace tutti::cpu {

// The windows along the last axis, of one position on the two before it.
struct PoolGradientLine {
  const float* x;
  const float* gradients;  // [windows, channels]
  float* sums;             // as x
  int64_t outer, middle;   // places of the windows on those two
  const std::array<PoolAxis, 3>* axes;
  size_t channels;
};

}  // namespace tutti::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

// Calls what(place, number) for each place of a window.
template <class What>
HWY_INLINE void for_each_place(const PoolGradientLine& line, int64_t count, const What& what) {
  const auto& axes = *line.axes;
  int32_t number = 0;
  for (int64_t i = 0; i < line.outer; ++i)
    for (int64_t j = 0; j < line.middle; ++j)
      for (int64_t k = 0; k < count; ++k) what(i * axes[0].step + j * axes[1].step + k * axes[2].step, number++);
}

// A vector of channels of one window: who is the best of each, the first among equals, and before all others a NaN; it gets the gradient.
template <bool largest, bool whole>
HWY_INLINE void scatter(const PoolGradientLine& line, int64_t start, int64_t count, const float* gradient, size_t part) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto load = [&](const float* from) HWY_ATTR { return whole ? hn::LoadU(d, from) : load_part(d, from, part); };
  auto best = load(line.x + start);
  auto which = hn::Zero(di);
  for_each_place(line, count, [&](int64_t place, int32_t number) HWY_ATTR {
    const auto x = load(line.x + start + place);
    const auto better = hn::AndNot(hn::IsNaN(best), hn::Or(largest ? hn::Gt(x, best) : hn::Lt(x, best), hn::IsNaN(x)));
    best = hn::IfThenElse(better, x, best);
    which = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, number), which);
  });
  const auto g = load(gradient);
  for_each_place(line, count, [&](int64_t place, int32_t number) HWY_ATTR {
    const auto chosen = hn::RebindMask(d, hn::Eq(which, hn::Set(di, number)));
    float* to = line.sums + start + place;
    const auto sum = hn::Add(load(to), hn::IfThenElseZero(chosen, g));
    if (whole) {
      hn::StoreU(sum, d, to);
    } else {
      store_part(sum, d, to, part);
    }
  });
}

template <bool largest>
void pool_gradient_line(const PoolGradientLine& line) {
  const size_t lanes = hn::Lanes(FloatTag());
  const float* gradients = line.gradients;
  for (const auto& [start, count] : (*line.axes)[2].places) {
    size_t c = 0;
    if (line.outer * line.middle * count == 0) c = line.channels;  // all of the window is padding
    for (; c + lanes <= line.channels; c += lanes)
      scatter<largest, true>(line, start + static_cast<int64_t>(c), count, gradients + c, lanes);
    if (c < line.channels) scatter<largest, false>(line, start + static_cast<int64_t>(c), count, gradients + c, line.channels - c);
    gradients += line.channels;
  }
}

using PoolGradientLines = void (*)(const PoolGradientLine& line);
PoolGradientLines find_pool_gradient(bool largest) { return largest ? pool_gradient_line<true> : pool_gradient_line<false>; }

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(find_pool_gradient);

bool can_pool_gradient(const Graph& graph, const Node& node) {
  return has_pool_axes(operand_type(graph, node, 0), operand_type(graph, node, 1).shape, node.attributes);
}

Kernel make_pool_gradient(const Graph& graph, const Node& node, int threads) {
  auto run = [gradient_line = HWY_DYNAMIC_DISPATCH(find_pool_gradient)(node.attributes.text("kind") == "max"),
              pool = pool_axes(operand_type(graph, node, 0).shape, operand_type(graph, node, 1).shape, node.attributes),
              threads](const Pointers& p) {
    // Windows of one image may overlap.
    share(pool.batch, threads, [&](int64_t begin, int64_t end) {
      float* sums = floats(p.results[0]);
      std::fill(sums + begin * pool.image, sums + end * pool.image, 0.0f);
      const int64_t row = pool.count(2) * pool.channels;
      for (int64_t index = begin * pool.lines(); index < end * pool.lines(); ++index) {
        const auto [from, outer, middle] = pool.line(index);
        gradient_line({floats(p.operands[0]) + from, floats(p.operands[1]) + index * row, sums + from, outer, middle, &pool.axes,
                       static_cast<size_t>(pool.channels)});
      }
    });
  };
  return {std::move(run), 0};
}

}  // namespace tutti::cpu
#endif
