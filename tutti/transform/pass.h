// Runs graph passes: a pass is a named function from graph to graph. Each is timed, can be skipped by name, and can be verified afterwards.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

struct Pass {
  std::string_view name;
  std::function<Graph(const Graph&)> run;
};

// One pass as it ran, for `tutti explain`. Nodes of scan bodies are counted too.
struct PassReport {
  std::string name;
  double microseconds = 0;
  size_t nodes_before = 0, nodes_after = 0;
};

struct PassOptions {
  std::vector<std::string> skip = {};         // names; an unknown one throws InvalidArgument
  bool verify = false;                        // after each pass; a broken graph throws InternalError with the pass's name
  int rounds = 6;                             // the list is run again until a round changes nothing, at most this often
  std::vector<PassReport>* report = nullptr;  // gets one entry for each pass that ran, in order
};

Graph run_passes(const Graph& graph, std::span<const Pass> passes, const PassOptions& options = {});

}  // namespace tutti
