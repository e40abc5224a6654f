#include "tutti/device/cpu/loops/pool.h"

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

// The outputs along the last axis with a window, of one position on the two before it.
struct PoolLine {
  const float* from;
  int64_t outer, middle;  // places of the window on those two
  const std::array<PoolAxis, 3>* axes;
  size_t channels;
  float* to;
};

}  // namespace tutti::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

// One output's channels, so many vectors of them; of a last vector only `part` lanes where it is not `whole`. The most frequent windows
// have their places as constants, 0 stands for any.
template <class F, size_t vectors, bool whole, int64_t middle, int64_t last>
HWY_INLINE void pool_tile(const float* x, const PoolLine& line, int64_t places, float* to, size_t part) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  FloatVector sum[vectors];
  for (size_t v = 0; v < vectors; ++v) sum[v] = hn::Set(d, F::identity);
  const int64_t middles = middle ? middle : line.middle, lasts = last ? last : places;
  for (int64_t i = 0; i < (middle ? 1 : line.outer); ++i) {
    for (int64_t j = 0; j < middles; ++j) {
      const float* from = x + i * (*line.axes)[0].step + j * (*line.axes)[1].step;
      for (int64_t k = 0; k < lasts; ++k, from += (*line.axes)[2].step)
        for (size_t v = 0; v < vectors; ++v)
          sum[v] = F::of(sum[v], whole ? hn::LoadU(d, from + v * lanes) : load_part(d, from + v * lanes, part));
    }
  }
  for (size_t v = 0; v < vectors; ++v) {
    if (whole) {
      hn::StoreU(sum[v], d, to + v * lanes);
    } else {
      store_part(sum[v], d, to + v * lanes, part);
    }
  }
}

template <class F, int64_t middle, int64_t last>
HWY_INLINE void pool_channels(const float* x, const PoolLine& line, int64_t places, float* to) {
  const size_t lanes = hn::Lanes(FloatTag()), channels = line.channels;
  size_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) pool_tile<F, 4, true, middle, last>(x + c, line, places, to + c, lanes);
  if (c + 2 * lanes <= channels) {
    pool_tile<F, 2, true, middle, last>(x + c, line, places, to + c, lanes);
    c += 2 * lanes;
  }
  if (c + lanes <= channels) {
    pool_tile<F, 1, true, middle, last>(x + c, line, places, to + c, lanes);
    c += lanes;
  }
  if (c < channels) pool_tile<F, 1, false, middle, last>(x + c, line, places, to + c, channels - c);
}

template <class F>
void pool_line(const PoolLine& line) {
  float* to = line.to;
  for (const auto& [start, count] : (*line.axes)[2].places) {
    if (line.outer == 1 && line.middle == 2 && count == 2) {
      pool_channels<F, 2, 2>(line.from + start, line, count, to);
    } else if (line.outer == 1 && line.middle == 3 && count == 3) {
      pool_channels<F, 3, 3>(line.from + start, line, count, to);
    } else {
      pool_channels<F, 0, 0>(line.from + start, line, count, to);
    }
    to += line.channels;
  }
}

using PoolLines = void (*)(const PoolLine& line);

PoolLines find_pool(Reduce kind) {
  switch (kind) {
    case Reduce::add: return pool_line<SumOf>;
    case Reduce::multiply: return pool_line<ProductOf>;
    case Reduce::max: return pool_line<LargestOf>;
    default: return pool_line<SmallestOf>;
  }
}

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::cpu {

HWY_EXPORT(find_pool);

bool can_pool(const Graph& graph, const Node& node) {
  return has_pool_axes(operand_type(graph, node, 0), result_type(graph, node).shape, node.attributes);
}

Pool::Pool(const Shape& operand, const Shape& windows, const Attributes& attributes)
    : axes_(pool_axes(operand, windows, attributes)), pool_line_(HWY_DYNAMIC_DISPATCH(find_pool)(reduce_kind(attributes.text("kind")))) {}

void Pool::run(const float* x, float* y, int64_t first, int64_t last) const {
  for (int64_t index = first; index < last; ++index, y += line_size()) {
    const auto [from, outer, middle] = axes_.line(index);
    pool_line_({x + from, outer, middle, &axes_.axes, static_cast<size_t>(axes_.channels), y});
  }
}

Kernel make_pool(const Graph& graph, const Node& node, int threads) {
  const Pool pool(operand_type(graph, node, 0).shape, result_type(graph, node).shape, node.attributes);
  auto run = [pool, threads](const Pointers& p) {
    share(pool.lines(), threads, [&](int64_t first, int64_t last) {
      pool.run(floats(p.operands[0]), floats(p.results[0]) + first * pool.line_size(), first, last);
    });
  };
  return {std::move(run), 0};
}

}  // namespace tutti::cpu
#endif
