// Follows the samples of a batch through a graph: whether each one's results depend on that sample alone, so that a batch may be cut or
// padded without changing them.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti {

// All inputs have `batch` samples, two or more, along axis 0, and so must all outputs. False when in doubt.
bool samples_are_independent(const Graph& graph, int64_t batch);

}  // namespace tutti
