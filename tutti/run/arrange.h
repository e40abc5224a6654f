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

// One group of members of one structure, for `tutti explain`.
struct ArrangedGroup {
  std::vector<std::string> members;
  Arrangement chosen = Arrangement::merged;
  std::string reason;  // why, when nothing was measured
  struct Time {
    Arrangement arrangement;
    double seconds;  // of one run
  };
  std::vector<Time> times;  // the whole program, this group arranged so
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

// What earlier processes measured and kept on disk under this key, for as many groups, which keep their members: the least time of each
// way. Whoever measures while the machine is busy may be wrong, so some processes measure before it is final. Nothing where there is no
// such entry or it is damaged.
struct KeptArrangement {
  static constexpr int enough = 3;
  int measurements = 0;
  std::vector<ArrangedGroup> groups;
};
std::optional<KeptArrangement> kept_arrangement(const std::string& key, std::vector<ArrangedGroup> groups);

// The graph with its members arranged; `groups`, if given, gets what was done. A model without members alike stays as it is. What is
// prepared of the weights while measuring stays in `cache`, which may be empty.
Graph arrange(Graph graph, const std::vector<keras::LayerTrace>& trace, const std::shared_ptr<Device>& device,
              const ArrangeOptions& options, std::shared_ptr<CompileCache>& cache, std::vector<ArrangedGroup>* groups = nullptr);

}  // namespace tutti
