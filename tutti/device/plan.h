// Where each value of a graph lies: values whose lifetimes do not meet share bytes of one arena. Used by every device that computes in host
// memory. Parameters and constants are not planned: they are used where they lie.
#pragma once

#include <span>
#include <vector>

#include "tutti/device/step.h"

namespace tutti {

struct Plan {
  static constexpr int64_t alignment = 64;
  static int64_t aligned(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
  static constexpr int64_t outside = -1;  // parameters, constants, views of them, and values inside a step

  std::vector<ValueId> root;       // per value: itself, or the value whose bytes it is a view of
  std::vector<int64_t> offset;     // per value: its place in the arena, or `outside`
  std::vector<int64_t> workspace;  // per step: the place of its scratch memory
  int64_t arena_bytes = 0;
};

// Steps in the order they run. Outputs and updates live to the end. Throws OutOfMemory when the sum leaves any machine's address space.
Plan plan_memory(const Graph& graph, std::span<const Step> steps);

}  // namespace tutti
