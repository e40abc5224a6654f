// Where the time of a pipeline went, and what that means.
#pragma once

#include <string>
#include <vector>

#include "tutti/base/json.h"
#include "tutti/run/pipeline.h"

namespace tutti::cli {

std::string stage_table(const std::vector<StageCounters>& stages, double seconds);  // with the advice below
Json stage_json(const std::vector<StageCounters>& stages);
std::string bottleneck(const std::vector<StageCounters>& stages);  // "device bound"
// "device bound: ...": which stage the others wait for, and what would help.
std::string stage_advice(const std::vector<StageCounters>& stages, double seconds);

}  // namespace tutti::cli
