// Many models in one graph: those of one structure are found, and become one part with an axis of models, or a loop over the models.
#pragma once

#include <functional>
#include <span>

#include "tutti/graph/graph.h"

namespace tutti {

// The nodes [first, end) of a graph, which are one model's; leaves among them do not count.
struct Region {
  size_t first = 0, end = 0;
  bool operator==(const Region&) const = default;
};

// Which of the regions do the same with other weights and may be done together, because none of them waits for another: two or more in each
// group, by index, ascending.
std::vector<std::vector<size_t>> group_alike(const Graph& graph, std::span<const Region> regions);

enum class Together {
  stacked,  // every value has an axis of models
  looped,   // a scan, whose slices are the models
};

struct RegionGroup {
  std::vector<Region> regions;  // a group of group_alike
  Together how = Together::stacked;
};

// The same inputs, outputs and values, the groups' members done together. Groups as group_alike gives them, or some of those.
Graph stack(const Graph& graph, std::span<const RegionGroup> groups);

// What a graph does, in words that are equal for graphs that differ only in their literals and in the names of parameters and outputs.
std::string structure_of(const Graph& graph);

// One model's graph done for many models at once: inputs, states and outputs have an axis of models before their own. `initial` gives the
// states' values, with that axis; weights and constants are the same for all models.
Graph stack_models(const Graph& graph, int64_t models, const std::function<Tensor(const Node& state)>& initial);

}  // namespace tutti
