// Softmax, log-softmax, layer and root-mean-square norms over trailing axes, found again in the nodes that a graph writes them with
// (graph/compose.h, keras/layers/normalization.cc).
#pragma once

#include <optional>

#include "tutti/device/kernel.h"

namespace tutti::cpu {

struct RowMatch {
  enum class Kind { softmax, log_softmax, layer_norm, rms_norm };
  Kind kind;
  int64_t rows = 1, length = 1;
  float epsilon = 0;              // of the norms
  std::vector<ValueId> operands;  // x; then scale and offset where the norm has them
  bool has_scale = false, has_offset = false;
  std::vector<const Node*> nodes;  // all that the kernel stands for, in topological order; the last makes the result
};

// What ends in `root`, a node of floats. Values made on the way may have other readers; the caller looks.
std::optional<RowMatch> match_rows(const Graph& graph, const Node& root);

// Operands as the match lists them, one result.
Kernel make_rows(const RowMatch& match, int threads);

}  // namespace tutti::cpu
