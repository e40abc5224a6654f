// A kernel: made once at compile time, when types and attributes are known; run on pointers. It keeps nothing between runs but what it was
// made from, so that several threads may run it at once, each with memory of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

struct Pointers {
  const std::byte* const* operands;
  std::byte* const* results;
  std::byte* workspace;
  // Every second time in a loop: who reads the same bytes each time may begin at their end, which is still in the cache.
  bool backwards = false;
};

class Sequence;

// Steps that a kernel runs inside of itself: what a loop repeats, or one of several branches.
struct KernelBody {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Sequence> steps;
  int64_t runs;  // in one run of the kernel
};

struct Kernel {
  std::function<void(const Pointers&)> run;
  int64_t workspace = 0;  // bytes
  std::vector<KernelBody> bodies = {};
  // With bodies: the same run, the seconds of their steps added one after another, as Sequence::run_timed does.
  std::function<void(const Pointers&, std::span<double> seconds)> run_timed = {};
};

inline const Type& operand_type(const Graph& graph, const Node& node, size_t i) { return graph.type(node.operands[i]); }
inline const Type& result_type(const Graph& graph, const Node& node, size_t i = 0) { return graph.type(node.results[i]); }

}  // namespace tutti
