// The devices there are. A new one is a row.
#include <map>
#include <mutex>

#include "tutti/base/error.h"
#include "tutti/device/cpu/cpu.h"
#include "tutti/device/device.h"
#include "tutti/device/null/null.h"
#include "tutti/device/reference/reference.h"

namespace tutti {

namespace {

struct BuiltIn {
  std::string name, kind;
  std::unique_ptr<Device> (*make)();  // throws DeviceError with the reason when it cannot be had
};
const BuiltIn built_in[] = {
    {"cpu", "host", make_cpu_device},
    {"reference", "host", make_reference_device},
    {"null", "none", make_null_device},
};

}  // namespace

std::shared_ptr<Device> open_device(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<Device>> open;
  std::lock_guard lock(mutex);
  if (auto found = open.find(name); found != open.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& row : built_in) {
    if (row.name == name) return open[name] = row.make();
    known.push_back(row.name);
  }
  std::string list;
  for (const auto& n : known) list += (list.empty() ? "" : ", ") + n;
  fail<InvalidArgument>("device", "unknown device '{}'{}; known: {}", name, did_you_mean(name, known), list);
}

std::vector<DeviceListing> list_devices() {
  std::vector<DeviceListing> out;
  for (const auto& row : built_in) {
    DeviceListing listing{row.name, row.kind, "", "built in", false, 0};
    try {
      auto device = open_device(row.name);
      listing.description = device->description();
      listing.memory_bytes = device->memory_bytes();
      listing.usable = true;
    } catch (const DeviceError& e) {
      listing.found = e.what();
    }
    out.push_back(std::move(listing));
  }
  return out;
}

}  // namespace tutti
