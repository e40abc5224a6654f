// Several runs of a graph with states as one run of a loop on the device.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti {

// Inputs and outputs have an axis of `times` runs before their own; states have gone through all of them.
Graph repeat(const Graph& graph, int64_t times);

}  // namespace tutti
