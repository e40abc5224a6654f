// A graph run for several small batches one after another, its results added up.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti {

// The outputs from `first` on are added to inputs of their types, which stand behind the graph's own: what the runs before have given.
Graph accumulate(const Graph& graph, size_t first);

}  // namespace tutti
