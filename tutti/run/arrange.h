// How the members of an ensemble run: those of one structure merged (side by side), stacked (with an axis of models) or looped, whichever
// is fastest on the device for these shapes. Any model with models inside is an ensemble in this sense, whoever wrote it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tutti/device/device.h"
#include "tutti/keras/lower.h"
#include "tutti/transform/stack.h"

namespace tutti {

enum class Arrangement { measured, merged, stacked, looped };
std::string_view name(Arrangement arrangement);
// "auto" for measured; throws InvalidArgument for other words.
Arrangement arrangement_of(std::string_view name);
const std::vector<std::string>& arrangement_names();

// A way to run members alike: those stacked or looped as one, or in parts of which each has a core of the device.
struct Way {
  Arrangement arrangement = Arrangement::merged;
  size_t parts = 1;
  auto operator<=>(const Way&) const = default;
};
std::string name(Way way);  // "stacked", "stacked in 2"

// One group of members of one structure, for `tutti explain`.
struct ArrangedGroup {
  std::vector<std::string> members;
  Way chosen = {};
  std::string reason;           // why, when nothing was measured
  std::map<Way, double> times;  // seconds of a run of the whole program, this group arranged so
  // The fastest of what was measured.
  void choose();
};

struct ArrangeOptions {
  Arrangement wanted = Arrangement::measured;
  int threads = 0;
  Precision precision = Precision::float32;
};

// The members of a lowered model: models inside it that are not ensembles themselves.
struct MemberRegion {
  std::string name;
  Region region;
};
std::vector<MemberRegion> members_of(const std::vector<keras::LayerTrace>& trace);

// What earlier processes measured and kept on disk under this key, for as many groups, which keep their members; nothing where there is no
// such entry or it is damaged.
struct KeptArrangement {
  std::vector<ArrangedGroup> groups;
  int rounds = 0;  // processes that have measured
};
std::optional<KeptArrangement> kept_arrangement(const std::string& key, std::vector<ArrangedGroup> groups);
// What a machine does that is busy with something else must not count for ever: so many processes measure, and the fastest run of each way
// counts.
inline constexpr int arrangement_rounds = 3;

// The graph with its members arranged; `groups`, if given, gets what was done. A model without members alike stays as it is.
Graph arrange(Graph graph, const std::vector<keras::LayerTrace>& trace, const std::shared_ptr<Device>& device,
              const ArrangeOptions& options, std::vector<ArrangedGroup>* groups = nullptr);

}  // namespace tutti
