// How fast a device is, for people and for programs: of devices --measure and explain.
#pragma once

#include <string>
#include <vector>

#include "tutti/base/json.h"
#include "tutti/device/speed.h"

namespace tutti::cli {

// {"threads", "flops_per_second", "bytes_per_second" (of memory), "bandwidth": [{"bytes", "bytes_per_second"}, ...]}, one for each.
Json speeds_json(const std::vector<Speed>& speeds);
// A row for each.
std::string speeds_table(const std::vector<Speed>& speeds);

}  // namespace tutti::cli
