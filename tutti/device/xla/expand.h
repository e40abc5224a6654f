// What StableHLO does not have, by what it has.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti::xla {

// random_bits as arithmetic, because plugins order Philox's words as they like and the same key means the same bits everywhere;
// select_and_scatter of dilated or cropped windows as a sum over the places of a window. In bodies of scans as well.
Graph expand(const Graph& graph);

}  // namespace tutti::xla
