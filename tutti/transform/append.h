// Graphs within graphs.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti {

// Copies the nodes of `from` into `to`, `inputs` standing for its inputs; gives its outputs in order. Weights and states keep their names,
// `prefix` before them. A state's update comes along.
std::vector<Value> append(Graph& to, const Graph& from, const std::vector<Value>& inputs, const std::string& prefix = "");

}  // namespace tutti
