// A graph as StableHLO text: what PJRT plugins compile.
#pragma once

#include <string>
#include <vector>

#include "tutti/device/device.h"

namespace tutti::xla {

struct StableHlo {
  std::string text;  // a module; @main takes the inputs, then `resident`, and gives the outputs, then the next values of states
  // What stays on the device from run to run: weights, states, and constants that are too long to be written out.
  struct Resident {
    Tensor value;
    bool is_state = false;
    std::string name = {};      // of a state
    int64_t state_result = -1;  // of a state: which result is its next value, to be computed in its place
  };
  std::vector<Resident> resident;
};

struct StableHloOptions {
  int64_t longest_literal = 256;  // elements of a constant that is written out
  Precision precision = Precision::float32;
  // A step of a scan makes those slices of the next one that elementwise ops read. XLA's compiler for the processor would slice inside of
  // their loops, and make scalar code of those that write over a carry.
  bool slices_ahead = false;
};

// Weights and states may lack values only where nothing will run.
StableHlo to_stablehlo(const Graph& graph, const StableHloOptions& options = {});

}  // namespace tutti::xla
