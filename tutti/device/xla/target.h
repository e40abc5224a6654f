// Devices that need not be here: a program is compiled for one by its published limits, and looked at or kept, but not run.
#pragma once

#include "tutti/device/device.h"
#include "tutti/device/xla/plugins.h"

namespace tutti::xla {

struct Target {
  std::string name;      // "h100"
  std::string platform;  // "cuda"
  std::string config;    // GpuTargetConfigProto, as text
  double flops[3];       // a second, by Precision
  double bytes_per_second;
  int64_t memory_bytes;
};

// One of targets/*.toml, or a file like them. An unknown name lists its nearest neighbours.
Target find_target(const std::string& name);
const std::vector<std::string>& target_names();

// By a name with a target, "cuda@h100".
std::unique_ptr<Device> make_target_device(const std::string& name, const DeviceName& asked);

}  // namespace tutti::xla
