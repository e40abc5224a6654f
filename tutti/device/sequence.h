// Steps in order, without memory of their own. A frame gives a run its memory: the arena, and the table of pointers that the kernels see.
// One sequence serves any number of frames, so threads share it and loops run it again and again.
#pragma once

#include "tutti/device/plan.h"

namespace tutti {

class Sequence {
 public:
  Sequence(const Graph& graph, std::vector<Step> steps);

  const Plan& plan() const { return plan_; }
  const std::vector<Step>& steps() const { return steps_; }
  int64_t launches() const { return launches_; }
  int64_t frame_bytes() const { return table_ + static_cast<int64_t>(slot_count_ * sizeof(std::byte*)); }

  // Makes a frame of these bytes, aligned as the plan is. Parameters have to be bound before it runs.
  void place(std::byte* frame) const;
  // Where a value lies in this frame from now on: a parameter, or a planned value that shall be computed elsewhere.
  void bind(std::byte* frame, ValueId value, const std::byte* data) const;
  // The bytes of a value that has any; after run() of those that live to the end.
  std::byte* value(const std::byte* frame, ValueId id) const { return slots(frame)[first_slot_[static_cast<size_t>(root(id))]]; }
  // The value whose bytes `id` shares, itself included.
  ValueId root(ValueId id) const { return plan_.root[static_cast<size_t>(id)]; }
  // Whether the value is computed by a step of its own bytes, so that bind() can move it.
  bool computed(ValueId id) const { return root(id) == id && plan_.offset[static_cast<size_t>(id)] != Plan::outside; }
  void run(std::byte* frame) const;
  void run_step(std::byte* frame, size_t step) const;

 private:
  std::byte** slots(const std::byte* frame) const { return reinterpret_cast<std::byte**>(const_cast<std::byte*>(frame) + table_); }
  Plan plan_;
  std::vector<Step> steps_;
  std::vector<Tensor> literals_;  // kept alive
  // Slots of the table: one a root, then for each step its operands and results.
  std::vector<size_t> first_slot_;         // per value; of roots
  std::vector<std::vector<size_t>> uses_;  // per value: its slots; of roots
  std::vector<size_t> step_slots_;         // per step
  std::vector<std::pair<ValueId, int64_t>> planned_;
  std::vector<std::pair<ValueId, const std::byte*>> fixed_;  // constants
  size_t slot_count_ = 0;
  int64_t table_ = 0, launches_ = 0;
};

}  // namespace tutti
