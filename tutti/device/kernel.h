// A kernel: made once at compile time, when types and attributes are known; run on pointers. It keeps nothing between runs but what it was
// made from, so that several threads may run it at once, each with memory of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

class Collective;  // collective.h

struct Pointers {
  const std::byte* const* operands;
  std::byte* const* results;
  std::byte* workspace;
  // How many runs of the program, or turns of the loop, came before this one. Who reads the same bytes each time may begin at their end
  // every second time: it is still in the cache. In a loop, a kernel that keeps its workspace finds there, from the second turn on, what it
  // left.
  int64_t turn = 0;
  Collective* collective = nullptr;  // what the program has joined, where it is one of several replicas
};

class Sequence;

// Steps that a kernel runs inside of itself: what a loop repeats, or one of several branches.
struct KernelBody {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Sequence> steps;
  int64_t runs;  // in one run of the kernel
};

// Takes only what can be called as a constant: what a run counts or collects is in its workspace or on its stack.
template <class... Arguments>
class KernelFunction {
 public:
  KernelFunction() = default;
  // A kernel is whatever does its work. NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, KernelFunction>) KernelFunction(F&& f)  // NOLINT
      : call_(std::forward<F>(f)) {
    static_assert(std::is_invocable_v<const std::decay_t<F>&, Arguments...>, "a kernel that threads share keeps nothing between runs");
  }
  void operator()(Arguments... arguments) const { call_(arguments...); }
  explicit operator bool() const { return static_cast<bool>(call_); }

 private:
  std::function<void(Arguments...)> call_;
};

// Result and operand by index: the result may lie in the bytes of the operand, if nobody reads that later.
struct ResultOver {
  size_t result, operand;
};

struct Kernel {
  KernelFunction<const Pointers&> run;
  int64_t workspace = 0;         // bytes
  bool keeps_workspace = false;  // between the runs of a loop nobody else has it
  std::vector<ResultOver> over = {};
  std::vector<KernelBody> bodies = {};
  // With bodies: the same run, the seconds of their steps added one after another, as Sequence::run_timed does.
  KernelFunction<const Pointers&, std::span<double> /* seconds */> run_timed = {};
};

inline const Type& operand_type(const Graph& graph, const Node& node, size_t i) { return graph.type(node.operands[i]); }
inline const Type& result_type(const Graph& graph, const Node& node, size_t i = 0) { return graph.type(node.results[i]); }

}  // namespace tutti
