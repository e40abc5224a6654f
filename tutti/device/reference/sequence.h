// The nodes of a graph as kernels in order, without memory of their own: a program and scan give them an arena, and pointers for the
// parameters.
#pragma once

#include "tutti/device/plan.h"
#include "tutti/device/reference/kernel.h"

namespace tutti::reference {

class Sequence {
 public:
  explicit Sequence(const Graph& graph);

  int64_t arena_bytes() const { return plan_.arena_bytes; }
  // Where values that are planned lie from now on; `arena` is aligned as the plan is.
  void place(std::byte* arena);
  // Where a parameter lies from now on.
  void bind(ValueId parameter, const std::byte* data);
  // The bytes of any value; after run() of those that live to the end.
  std::byte* value(ValueId id) const { return pointers_[static_cast<size_t>(plan_.root[static_cast<size_t>(id)])]; }
  // The value whose bytes `id` shares, itself included.
  ValueId root(ValueId id) const { return plan_.root[static_cast<size_t>(id)]; }
  void run();

 private:
  struct Step {
    Kernel kernel;
    std::vector<ValueId> operands, results;  // roots
    int64_t workspace;
  };
  Plan plan_;
  std::vector<Step> steps_;
  std::vector<Tensor> literals_;  // kept alive
  std::vector<std::byte*> pointers_;
  std::vector<std::pair<ValueId, int64_t>> planned_;  // roots in the arena, and where
  std::vector<const std::byte*> operands_;            // of the step that runs
  std::vector<std::byte*> results_;
  std::byte* arena_ = nullptr;
};

}  // namespace tutti::reference
