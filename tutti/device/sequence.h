// Steps in order, without memory of their own. A frame gives a run its memory: the arena, and the table of pointers that the kernels see.
// One sequence serves any number of frames, so threads share it and loops run it again and again.
#pragma once

#include "tutti/device/plan.h"

namespace tutti {

class Sequence {
 public:
  Sequence(const Graph& graph, std::vector<Step> steps);

  const Plan& plan() const { return plan_; }
  std::span<const Step> steps() const { return steps_; }
  int64_t launches() const { return total_launches(steps_); }
  int64_t frame_bytes() const { return table_ + static_cast<int64_t>(slot_count_ * sizeof(std::byte*)); }

  // Makes a frame of these bytes, aligned as the plan is. Parameters have to be bound before it runs.
  void place(std::byte* frame) const;
  // Where a value lies in this frame from now on: a parameter, or a planned value that shall be computed elsewhere.
  void bind(std::byte* frame, ValueId value, const std::byte* data) const;
  // The bytes of a value that has any; after run() of those that live to the end.
  std::byte* value(const std::byte* frame, ValueId id) const { return slots(frame)[uses_[at(root(id))][0]]; }
  // The value whose bytes `id` shares, itself included.
  ValueId root(ValueId id) const { return plan_.root[at(id)]; }
  // turn: see Pointers.
  void run(std::byte* frame, int64_t turn = 0) const { run_some(frame, 0, steps_.size(), turn, nullptr); }
  // The steps [first, end), of a program that has joined a collective.
  void run_some(std::byte* frame, size_t first, size_t end, int64_t turn, Collective* collective) const;
  // The same, adding each step's seconds; a loop's step is followed by those of its body. One clock reading a step, so a little slower.
  void run_timed(std::byte* frame, std::span<double> seconds, int64_t turn = 0, Collective* collective = nullptr) const {
    run_some_timed(frame, 0, steps_.size(), seconds, turn, collective);
  }
  void run_some_timed(std::byte* frame, size_t first, size_t end, std::span<double> seconds, int64_t turn, Collective* collective) const;
  size_t timed_steps() const { return timed_steps(steps_.size()); }

  // An output: a step computes it, and bind() can move it to where it is wanted; or its bytes are someone else's too and have to be copied.
  struct Port {
    ValueId value;
    bool direct;
  };
  std::vector<Port> output_ports(const Graph& graph) const;

 private:
  size_t timed_steps(size_t end) const;  // of the steps before that
  Pointers pointers(std::byte* frame, size_t step, int64_t turn, Collective* collective = nullptr) const {
    std::byte** operands = slots(frame) + step_slots_[step];
    return {operands, operands + steps_[step].operands.size(), frame + plan_.workspace[step], turn, collective};
  }
  std::byte** slots(const std::byte* frame) const { return reinterpret_cast<std::byte**>(const_cast<std::byte*>(frame) + table_); }
  Plan plan_;
  std::vector<Step> steps_;
  std::vector<Tensor> literals_;  // kept alive
  // Slots of the table: one a root, then for each step its operands and results.
  std::vector<std::vector<size_t>> uses_;  // per value: its slots, its own first; of roots
  std::vector<size_t> step_slots_;         // per step
  std::vector<std::pair<ValueId, int64_t>> planned_;
  std::vector<std::pair<ValueId, const std::byte*>> fixed_;  // constants
  size_t slot_count_ = 0;
  int64_t table_ = 0;
};

}  // namespace tutti
