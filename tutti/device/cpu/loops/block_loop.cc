#include "tutti/device/cpu/loops/block_loop.h"

#include <algorithm>

#include "tutti/device/cpu/team.h"

namespace tutti::cpu {

namespace {

constexpr size_t most_axes = 48;  // of two elements and more, in a shape of at most 2^48

}  // namespace

void BlockLoop::operator()(const Pointers& p) const {
  const int64_t blocks = space.blocks();
  share(blocks, threads, pieces_of(blocks, threads),
        [&](int64_t begin, int64_t end, int slot) { run(p, own(slot, p.workspace, thread_bytes), begin, end); });
}

void BlockLoop::run(const Pointers& p, std::byte* workspace, int64_t begin, int64_t end) const {
  auto** at = reinterpret_cast<std::byte**>(workspace);
  std::byte** filled = at + slots;
  for (const Operand& source : sources) at[source.slot] = const_cast<std::byte*>(p.operands[source.operand]) + source.offset;
  for (const auto& [slot, result] : targets) at[slot] = p.results[result];
  for (const auto& [slot, offset] : registers) at[slot] = workspace + offset;
  for (const Constant& constant : constants) at[constant.slot] = const_cast<std::byte*>(constant.bytes.data());
  for (size_t i = 0; i < fills.size(); ++i) filled[i] = nullptr;
  std::array<int64_t, most_axes> position;
  std::fill_n(position.begin(), counts.size(), 0);
  for (int64_t rest = begin, axis = static_cast<int64_t>(counts.size()); rest != 0 && axis-- > 0;) {
    const auto k = static_cast<size_t>(axis);
    position[k] = rest % counts[k];
    rest /= counts[k];
    for (const Moving& m : moving) at[m.slot] += position[k] * m.steps[k];
  }
  const size_t cut = counts.size() - 1;
  for (int64_t block = begin; block < end; ++block) {
    const bool whole = position[cut] + 1 < counts[cut] || space.last() == space.longest();
    for (size_t i = 0; i < fills.size(); ++i) {
      const Fill& fill = fills[i];
      if (filled[i] == at[fill.from]) continue;
      space.expand(fill.stream, fill.element_bytes, whole || fill.repeats, at[fill.from], at[fill.to]);
      filled[i] = at[fill.from];
    }
    do_steps(at, whole);
    if (block + 1 == end) return;
    for (size_t k = cut + 1; k-- > 0;) {
      const bool more = ++position[k] < counts[k];
      const int64_t move = more ? 1 : 1 - counts[k];
      for (const Moving& m : moving) at[m.slot] += move * m.steps[k];
      if (more) break;
      position[k] = 0;
    }
  }
}

void BlockLoop::do_steps(std::byte* const* at, bool whole) const {
  const int64_t count = whole ? space.longest() : space.last();
  for (const BlockStep& step : steps) {
    const auto& from = step.operands;
    const std::byte* operands[] = {at[from[0]], at[from[1]], at[from[2]], at[from[3]], at[from[4]]};
    if (step.run != nullptr) {
      step.run(operands, at[step.result], count);
    } else {
      (whole ? step.whole : step.last)({operands, at + step.result, nullptr});
    }
  }
}

}  // namespace tutti::cpu
