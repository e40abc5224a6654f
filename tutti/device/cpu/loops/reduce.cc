#include "tutti/device/cpu/loops/reduce.h"

#include "tutti/device/cpu/simd/targets.h"
//
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/loops/reduce.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include "tutti/device/bytes.h"
#include "tutti/device/cpu/loops/reduce_inl.h"
#include "tutti/device/cpu/team.h"
#include "tutti/device/plan.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

// Rows shorter than a vector or two: element after element, several rows at once so that their additions do not wait for each other.
constexpr size_t short_row = 16;

template <class F>
void short_rows(const float* x, size_t count, size_t length, float* to) {
  constexpr size_t at_once = 8;
  size_t r = 0;
  for (; r + at_once <= count; r += at_once, x += at_once * length) {
    float sums[at_once];
    for (float& sum : sums) sum = F::identity;
    for (size_t k = 0; k < length; ++k)
      for (size_t i = 0; i < at_once; ++i) sums[i] = F::of(sums[i], x[i * length + k]);
    std::copy_n(sums, at_once, to + r);
  }
  for (; r < count; ++r, x += length) {
    float sum = F::identity;
    for (size_t k = 0; k < length; ++k) sum = F::of(sum, x[k]);
    to[r] = sum;
  }
}

template <class F>
void rows(const float* x, size_t count, size_t length, float* to) {
  if (length <= short_row) return short_rows<F>(x, count, length, to);
  for (size_t r = 0; r < count; ++r, x += length) to[r] = reduce_row<F>(x, length, [](FloatVector v, size_t) HWY_ATTR { return v; });
}

// Rows that are added before the sums are added.
constexpr size_t row_block = 256;

// `vectors` neighbouring vectors of columns in registers, over all rows; the last may be a part. Sums of blocks of rows are added with the
// error of each addition carried along (Kahan's).
template <class F, size_t vectors>
HWY_INLINE void columns_tile(const float* x, size_t length, size_t stride, float* to, size_t part) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [=](const float* from, size_t v) HWY_ATTR {
    return v + 1 == vectors && part != lanes ? load_part(d, from + v * lanes, part) : hn::LoadU(d, from + v * lanes);
  };
  FloatVector total[vectors], lost[vectors];
  for (size_t v = 0; v < vectors; ++v) total[v] = hn::Set(d, F::identity), lost[v] = hn::Zero(d);
  for (size_t r = 0; r < length;) {
    const size_t end = std::is_same_v<F, SumOf> ? std::min(length, r + row_block) : length;
    FloatVector sum[vectors];
    for (size_t v = 0; v < vectors; ++v) sum[v] = hn::Set(d, F::identity);
    for (; r < end; ++r)
      for (size_t v = 0; v < vectors; ++v) sum[v] = F::of(sum[v], load(x + r * stride, v));
    for (size_t v = 0; v < vectors; ++v) {
      // One block is its sum: infinities survive, which carrying would turn into NaN.
      if (!std::is_same_v<F, SumOf> || length <= row_block) {
        total[v] = sum[v];
        continue;
      }
      const FloatVector y = hn::Sub(sum[v], lost[v]), next = hn::Add(total[v], y);
      const FloatVector error = hn::Sub(hn::Sub(next, total[v]), y);
      lost[v] = hn::IfThenElse(hn::IsFinite(error), error, hn::Zero(d));
      total[v] = next;
    }
  }
  for (size_t v = 0; v + 1 < vectors; ++v) hn::StoreU(total[v], d, to + v * lanes);
  if (part == lanes) return hn::StoreU(total[vectors - 1], d, to + (vectors - 1) * lanes);
  store_part(total[vectors - 1], d, to + (vectors - 1) * lanes, part);
}

// x: [length, stride], of which `columns` columns.
template <class F>
void columns(const float* x, size_t length, size_t stride, size_t columns, float* to) {
  const size_t lanes = hn::Lanes(FloatTag());
  size_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) columns_tile<F, 4>(x + c, length, stride, to + c, lanes);
  for (; c < columns; c += lanes) columns_tile<F, 1>(x + c, length, stride, to + c, std::min(lanes, columns - c));
}

void rows_of_kind(Reduce kind, const float* x, size_t count, size_t length, float* to) {
  switch (kind) {
    case Reduce::add: return rows<SumOf>(x, count, length, to);
    case Reduce::multiply: return rows<ProductOf>(x, count, length, to);
    case Reduce::max: return rows<LargestOf>(x, count, length, to);
    case Reduce::min: return rows<SmallestOf>(x, count, length, to);
  }
}

void columns_of_kind(Reduce kind, const float* x, size_t length, size_t stride, size_t count, float* to) {
  switch (kind) {
    case Reduce::add: return columns<SumOf>(x, length, stride, count, to);
    case Reduce::multiply: return columns<ProductOf>(x, length, stride, count, to);
    case Reduce::max: return columns<LargestOf>(x, length, stride, count, to);
    case Reduce::min: return columns<SmallestOf>(x, length, stride, count, to);
  }
}

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace tutti::cpu {

HWY_EXPORT(rows_of_kind);
HWY_EXPORT(columns_of_kind);

void reduce_rows(Reduce kind, const float* x, int64_t rows, int64_t length, float* to, int threads) {
  share(rows, threads, [=](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(rows_of_kind)(kind, x + begin * length, static_cast<size_t>(end - begin), static_cast<size_t>(length), to + begin);
  });
}

void reduce_columns(Reduce kind, const float* x, int64_t outer, int64_t length, int64_t columns, float* to, int threads) {
  const auto some = [=](int64_t begin, int64_t end, int64_t first, int64_t last) {
    for (int64_t o = begin; o < end; ++o) HWY_DYNAMIC_DISPATCH(columns_of_kind)
    (kind, x + o * length * columns + first, static_cast<size_t>(length), static_cast<size_t>(columns), static_cast<size_t>(last - first),
     to + o * columns + first);
  };
  // Whole planes, or else groups of columns.
  if (threads <= 1 || outer >= threads) return share(outer, threads, [&](int64_t begin, int64_t end) { some(begin, end, 0, columns); });
  constexpr int64_t group = 64;
  share((columns + group - 1) / group, threads,
        [&](int64_t begin, int64_t end) { some(0, outer, begin * group, std::min(columns, end * group)); });
}

namespace {

// One axis of a value seen as [outer, length, inner] that goes away.
struct Stage {
  int64_t outer, length, inner;
};

// Neighbouring reduced axes at once, from the last to the first.
std::vector<Stage> stages_of(const Shape& shape, const Ints& dimensions) {
  std::vector<Stage> stages;
  int64_t inner = 1;
  for (int64_t axis = shape.rank() - 1; axis >= 0;) {
    if (!includes(dimensions, axis)) {
      inner *= shape[axis--];
      continue;
    }
    Stage stage{1, 1, inner};
    while (axis >= 0 && includes(dimensions, axis)) stage.length *= shape[axis--];
    for (int64_t i = 0; i <= axis; ++i) stage.outer *= shape[i];
    if (stage.length != 1) stages.push_back(stage);
  }
  if (stages.empty()) stages.push_back({shape.elements(), 1, 1});
  return stages;
}

}  // namespace

Reduce reduce_kind(std::string_view kind) {
  if (kind == "add") return Reduce::add;
  if (kind == "multiply") return Reduce::multiply;
  return kind == "max" || kind == "or" ? Reduce::max : Reduce::min;
}

Kernel make_reduction(const Graph& graph, const Node& node, int threads) {
  std::vector<Stage> stages = stages_of(operand_type(graph, node, 0).shape, node.attributes.ints("dimensions"));
  // What a stage leaves for the next one lies in the workspace, in two halves that take turns.
  int64_t half = 0;
  for (size_t i = 0; i + 1 < stages.size(); ++i) half = std::max(half, Plan::aligned(stages[i].outer * stages[i].inner * 4));
  return {[stages, half, threads, kind = reduce_kind(node.attributes.text("kind"))](const Pointers& p) {
            const float* x = floats(p.operands[0]);
            for (size_t i = 0; i < stages.size(); ++i) {
              float* to = floats(i + 1 == stages.size() ? p.results[0] : p.workspace + static_cast<int64_t>(i % 2) * half);
              const auto& [outer, length, inner] = stages[i];
              const int team = outer * length * inner < 16384 ? 1 : threads;
              if (inner == 1) {
                reduce_rows(kind, x, outer, length, to, team);
              } else {
                reduce_columns(kind, x, outer, length, inner, to, team);
              }
              x = to;
            }
          },
          2 * half};
}

}  // namespace tutti::cpu
#endif
