#include "tutti/device/sequence.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace tutti {

Sequence::Sequence(const Graph& graph, std::vector<Step> steps)
    : plan_(plan_memory(graph, steps)), steps_(std::move(steps)), uses_(graph.value_count()) {
  auto slot = [&](ValueId id) { uses_[at(root(id))].push_back(slot_count_++); };
  for (const auto& node : graph.nodes())
    for (ValueId id : node.results) {
      if (root(id) != id) continue;
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
  }
  table_ = Plan::aligned(plan_.arena_bytes);
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

void Sequence::run_some(std::byte* frame, size_t first, size_t end, int64_t turn, Collective* collective) const {
  for (size_t step = first; step < end; ++step) steps_[step].kernel.run(pointers(frame, step, turn, collective));
}

void Sequence::run_some_timed(std::byte* frame, size_t first, size_t end, std::span<double> seconds, int64_t turn,
                              Collective* collective) const {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  size_t place = timed_steps(first);
  for (size_t step = first; step < end; ++step) {
    const Kernel& kernel = steps_[step].kernel;
    const size_t own = place++;
    if (!kernel.bodies.empty()) {
      kernel.run_timed(pointers(frame, step, turn, collective), seconds.subspan(place));
      for (const KernelBody& body : kernel.bodies) place += body.steps->timed_steps();
    } else {
      kernel.run(pointers(frame, step, turn, collective));
    }
    const auto now = Clock::now();
    seconds[own] += std::chrono::duration<double>(now - begin).count();
    begin = now;
  }
}

size_t Sequence::timed_steps(size_t end) const {
  size_t count = end;
  for (size_t step = 0; step < end; ++step)
    for (const KernelBody& body : steps_[step].kernel.bodies) count += body.steps->timed_steps();
  return count;
}

std::vector<Sequence::Port> Sequence::output_ports(const Graph& graph) const {
  std::set<ValueId> taken;  // what two outputs, or an output and an update, have in common has one place
  for (const auto& update : graph.updates()) taken.insert(root(update.next));
  std::vector<Port> out;
  for (const auto& output : graph.outputs()) {
    ValueId source = root(output.value);
    bool direct = plan_.offset[at(source)] != Plan::outside && taken.insert(source).second;
    out.push_back({direct ? source : output.value, direct});
  }
  return out;
}

}  // namespace tutti
