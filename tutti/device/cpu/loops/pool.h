// reduce_window of floats whose last axis the window does not touch (channels last): pooling.
#pragma once

#include "tutti/device/kernel.h"

namespace tutti::cpu {

// Whether make_pool can do the node: has_pool_axes().
bool can_pool(const Graph& graph, const Node& node);
Kernel make_pool(const Graph& graph, const Node& node, int threads);

}  // namespace tutti::cpu
