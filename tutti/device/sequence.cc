#include "tutti/device/sequence.h"

#include <algorithm>
#include <limits>

namespace tutti {

namespace {
size_t at(ValueId id) { return static_cast<size_t>(id); }
}  // namespace

Sequence::Sequence(const Graph& graph, std::vector<Step> steps)
    : plan_(plan_memory(graph, steps)), steps_(std::move(steps)), first_slot_(graph.value_count()), uses_(graph.value_count()) {
  auto slot = [&](ValueId id) { uses_[at(root(id))].push_back(slot_count_++); };
  for (const auto& node : graph.nodes())
    for (ValueId id : node.results) {
      if (root(id) != id) continue;
      first_slot_[at(id)] = slot_count_;
      slot(id);
      if (plan_.offset[at(id)] != Plan::outside) planned_.emplace_back(id, plan_.offset[at(id)]);
      if (node.op != Op::constant) continue;
      literals_.push_back(node.literal);
      fixed_.emplace_back(id, literals_.back().bytes().data());
    }
  for (const Step& step : steps_) {
    step_slots_.push_back(slot_count_);
    for (ValueId id : step.operands) slot(id);
    for (ValueId id : step.results) slot(id);
    if (__builtin_add_overflow(launches_, step.launches, &launches_)) launches_ = std::numeric_limits<int64_t>::max();
  }
  table_ = (plan_.arena_bytes + Plan::alignment - 1) / Plan::alignment * Plan::alignment;
}

void Sequence::place(std::byte* frame) const {
  std::fill_n(slots(frame), slot_count_, nullptr);
  for (auto [id, offset] : planned_) bind(frame, id, frame + offset);
  for (auto [id, data] : fixed_) bind(frame, id, data);
}

// Kernels read operands through pointers to const; only results, which are never constants or parameters, are written.
void Sequence::bind(std::byte* frame, ValueId value, const std::byte* data) const {
  std::byte** table = slots(frame);
  for (size_t slot : uses_[at(value)]) table[slot] = const_cast<std::byte*>(data);
}

void Sequence::run_step(std::byte* frame, size_t step) const {
  std::byte** operands = slots(frame) + step_slots_[step];
  steps_[step].kernel.run({operands, operands + steps_[step].operands.size(), frame + plan_.workspace[step]});
}

void Sequence::run(std::byte* frame) const {
  for (size_t step = 0; step < steps_.size(); ++step) run_step(frame, step);
}

}  // namespace tutti
