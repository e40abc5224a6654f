// Less memory for more work: what the forward pass computed is computed again where the backward pass needs it, instead of being kept.
#pragma once

#include "tutti/graph/graph.h"

namespace tutti {

// `graph` is a step of training whose first output is the loss: nodes up to it are the forward pass. They are divided into segments; only
// what later segments read is kept, and the backward pass computes the rest of a segment anew from it. The number of segments is the one
// whose largest sum of values that live at the same time is smallest, in the order of the nodes; the same graph where none is smaller.
// Results are the same bits on a device that rounds each op. Sums over replicas are not done twice.
Graph recompute(const Graph& graph);

// The largest sum of bytes of values that live at the same time, in the order of the nodes. Parameters, constants and views are not
// counted.
int64_t live_bytes(const Graph& graph);

// Whether a node only keeps its operand apart from an equal value: computing anew would be shared with the first time. A pair of
// bitcast_converts, there and back, of which this is the second.
bool keeps_apart(const Graph& graph, const Node& node);

}  // namespace tutti
