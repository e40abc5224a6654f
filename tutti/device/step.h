// A step of a program: one or more nodes of a graph that one kernel computes. Values between the nodes of a step have no memory.
#pragma once

#include <span>
#include <string>

#include "tutti/device/kernel.h"

namespace tutti {

struct Step {
  std::string name;            // of the kernel, for people
  std::vector<int32_t> nodes;  // what it computes, in the graph's order; it runs where the last one stands
  std::vector<ValueId> operands, results;
  Kernel kernel = {};
  // Result 0 may lie in the bytes of an operand of the same type that nobody reads later.
  bool in_place = false;
  int64_t launches = 1;   // kernels a run, those of a loop's body counted each time
  int threads = 1;        // that the kernel uses
  bool fallback = false;  // computed by reference kernels where the device has faster ones for others
};

// Whether the node's result is its first operand's bytes under another type.
bool is_view(const Graph& graph, const Node& node);
// Whether it computes anything: no parameter, constant or view.
bool needs_step(const Graph& graph, const Node& node);

// Whether a kernel may read through the node, where what it repeats or cuts out lies: broadcasts and slices.
bool is_looked_through(const Node& node);

// Of all steps; as large as can be rather than wrapped around.
int64_t total_launches(std::span<const Step> steps);

// Of a scan whose body is these steps.
int64_t scan_launches(const Node& scan, std::span<const Step> body);

// The node alone as a step, without its kernel.
Step step_of(const Graph& graph, int32_t node, std::string name);

// Every node that needs one as a step of its own, without kernels.
std::vector<Step> one_step_a_node(const Graph& graph);

}  // namespace tutti
