// select_and_scatter of floats whose last axis the window does not touch (channels last): the gradient of pooling by maximum or minimum.
#pragma once

#include "tutti/device/kernel.h"

namespace tutti::cpu {

// As can_pool(), of the node's operand and its gradients.
bool can_pool_gradient(const Graph& graph, const Node& node);
Kernel make_pool_gradient(const Graph& graph, const Node& node, int threads);

}  // namespace tutti::cpu
