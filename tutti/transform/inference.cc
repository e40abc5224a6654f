#include "tutti/transform/passes.h"

namespace tutti {

std::vector<Pass> inference_passes(Evaluate evaluate, FoldMemo& memo) {
  return {
      {"remove_dead", remove_dead},
      {"simplify", simplify},
      {"share_common", share_common},
      {"hoist_from_scans", hoist_from_scans},
      {"move_weights_into_scans", move_weights_into_scans},
      {"fold_scales", fold_scales},
      {"sum_products", sum_products},
      {"fold_padding", fold_padding},
      {"fold_constants", [evaluate = std::move(evaluate), &memo](const Graph& graph) { return fold_constants(graph, evaluate, memo); }},
      {"remove_dead", remove_dead},
  };
}

}  // namespace tutti
