// reduce_window of floats whose last axis the window does not touch (channels last): pooling.
#pragma once

#include "tutti/device/cpu/loops/pool_axes.h"

namespace tutti::cpu {

class Pool {
 public:
  // What has_pool_axes().
  Pool(const Shape& operand, const Shape& windows, const Attributes& attributes);

  // Lines are the windows along the last axis that has them, counted through the batch.
  int64_t lines() const { return axes_.batch * axes_.lines(); }
  int64_t line_size() const { return axes_.count(2) * axes_.channels; }
  // Some of them. x: the whole operand; y: the first one's results.
  void run(const float* x, float* y, int64_t first, int64_t last) const;

 private:
  PoolAxes axes_;
  void (*pool_line_)(const struct PoolLine&);
};

// Whether make_pool can do the node: has_pool_axes().
bool can_pool(const Graph& graph, const Node& node);
Kernel make_pool(const Graph& graph, const Node& node, int threads);

}  // namespace tutti::cpu
