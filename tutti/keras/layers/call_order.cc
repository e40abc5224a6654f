#include "tutti/keras/layers/call_order.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tutti::keras {

namespace {

// The calls below `outputs`, parents before children: a depth-first walk that writes a call down when it leaves it.
std::vector<size_t> parents_first(const std::vector<OrderedCall>& calls, const std::vector<size_t>& outputs) {
  std::vector<size_t> order;
  std::vector<bool> seen(calls.size(), false);
  struct Step {
    size_t call, next_parent;
  };
  for (size_t output : outputs) {
    if (seen[output]) continue;
    std::vector<Step> path{{output, 0}};
    seen[output] = true;
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next_parent < calls[step.call].parents.size()) {
        size_t parent = calls[step.call].parents[step.next_parent++];
        if (!seen[parent]) {
          seen[parent] = true;
          path.push_back({parent, 0});
        }
      } else {
        order.push_back(step.call);
        path.pop_back();
      }
    }
  }
  return order;
}

}  // namespace

std::vector<size_t> call_ranks(const std::vector<OrderedCall>& calls, const std::vector<size_t>& outputs) {
  constexpr size_t unknown = static_cast<size_t>(-1);
  // The depth of a call: the longest way to an output, and no less than that of its layer's other calls. Calls of one depth run in the
  // order in which they were met on the way from the outputs to the inputs.
  std::vector<size_t> depth(calls.size(), unknown), met;
  std::map<size_t, size_t> layer_depth;
  auto meet = [&](size_t call, size_t at_least) {
    if (depth[call] == unknown) {
      met.push_back(call);
      depth[call] = at_least;
    }
    depth[call] = std::max(depth[call], at_least);
  };
  std::vector<size_t> order = parents_first(calls, outputs);
  for (auto call = order.rbegin(); call != order.rend(); ++call) {
    meet(*call, layer_depth[calls[*call].layer]);
    layer_depth[calls[*call].layer] = depth[*call];
    for (size_t parent : calls[*call].parents) meet(parent, depth[*call] + 1);
  }
  std::stable_sort(met.begin(), met.end(), [&](size_t a, size_t b) { return depth[a] > depth[b]; });
  std::vector<size_t> ranks(calls.size(), unknown);
  size_t next = 0;
  for (size_t call : met) ranks[call] = next++;
  for (size_t& rank : ranks)
    if (rank == unknown) rank = next++;
  return ranks;
}

}  // namespace tutti::keras
