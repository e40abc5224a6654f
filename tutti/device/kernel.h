// A kernel: made once at compile time, when types and attributes are known; run on pointers. It keeps nothing between runs but what it was
// made from, so that several threads may run it at once, each with memory of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

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

struct Kernel {
  std::function<void(const Pointers&)> run;
  int64_t workspace = 0;  // bytes
  // Of a loop: what it repeats; and the same run, the seconds of the body's steps added as Sequence::run_timed does.
  std::shared_ptr<const Sequence> body = {};
  std::function<void(const Pointers&, std::span<double> seconds)> run_timed = {};
};

inline const Type& operand_type(const Graph& graph, const Node& node, size_t i) { return graph.type(node.operands[i]); }
inline const Type& result_type(const Graph& graph, const Node& node, size_t i = 0) { return graph.type(node.results[i]); }

}  // namespace tutti
