// What a device tells of a program while it compiles it, when asked (CompileSettings::report): the passes that ran, its steps and what they
// cost, the memory they share. `tutti explain` is made of it.
#pragma once

#include "tutti/base/saturate.h"
#include "tutti/device/speed.h"
#include "tutti/device/step.h"
#include "tutti/transform/pass.h"

namespace tutti {

// A kernel that could have computed a node, and why it does not.
struct Refusal {
  const Graph* graph;  // the program's, or a scan's body
  int32_t node;
  std::string_view candidate;
  std::string reason;
};

struct StepReport {
  struct Refused {
    std::string kernel, op, reason;
  };
  std::string kernel;
  std::vector<std::string> ops;          // of the nodes it covers
  std::vector<std::string> layers = {};  // that they come from, as far as that is known
  Type result;                           // the first one
  int depth = 0;                         // in how many loops it is; a loop's step comes before those of its body
  int64_t runs = 1;                      // in a run of the program
  int threads = 1;
  // Of one of its runs.
  int64_t flops = 0;
  int64_t weight_bytes = 0;  // read; known before the run, prepared or not
  int64_t value_bytes = 0;   // read and written
  bool fallback = false;     // by reference kernels, because no others could
  std::vector<Refused> refused = {};

  // Of a run of the program.
  int64_t all_flops() const { return saturating_multiply(runs, flops); }
  int64_t all_bytes() const { return saturating_multiply(runs, saturating_add(weight_bytes, value_bytes)); }
};

struct MemoryReport {
  int64_t weights = 0, constants = 0;  // bytes; constants include folded weights
  int64_t packed = 0;                  // copies of them as kernels read them; those of the model's other programs are the same
  int64_t arena = 0;                   // intermediate values and scratch memory, as planned
  int64_t without_reuse = 0;           // the same, had each its own place; 0 where that is not known
  int64_t device = 0;  // of a device with memory of its own: all of it that a run takes, weights, inputs and outputs included
};

struct CompileReport {
  std::vector<PassReport> passes;
  std::vector<StepReport> steps;  // in the order they run: run_timed() tells a time for each
  MemoryReport memory;
  int64_t fusions = 0, library_calls = 0;  // among the steps, where a compiler tells
  std::optional<Speed> published;          // the roofs of a device that is not here
};

// Fills in the steps and the memory. A scan's body is listed where the kernel is there to name it.
void describe_steps(const Graph& graph, std::span<const Step> steps, CompileReport& report, std::span<const Refusal> refusals = {});

}  // namespace tutti
