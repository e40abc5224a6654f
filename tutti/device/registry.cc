// The devices there are. A new one is a row.
#include <map>
#include <mutex>

#include "tutti/base/error.h"
#include "tutti/device/cpu/cpu.h"
#include "tutti/device/device.h"
#include "tutti/device/hosts.h"
#include "tutti/device/null/null.h"
#include "tutti/device/reference/reference.h"
#include "tutti/device/xla/plugins.h"
#include "tutti/device/xla/xla.h"

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

class Registry {
 public:
  // The one of this name, or nothing.
  std::shared_ptr<Device> open(const std::string& name) {
    if (auto found = open_.find(name); found != open_.end()) return found->second;
    for (const auto& row : built_in)
      if (row.name == name) return open_[name] = row.make();
    if (xla::device_name(name)) return open_[name] = make_xla_device(name);
    return name == automatic_device ? open_[name] = open_best() : nullptr;
  }
  std::mutex mutex;

 private:
  // An accelerator, or the processor.
  std::shared_ptr<Device> open_best() {
    for (const auto& platform : xla::platforms()) {
      if (platform.is_host) continue;
      try {
        return open(std::string(platform.name));
      } catch (const DeviceError&) {
        continue;
      }
    }
    return open(std::string(default_device));
  }
  std::map<std::string, std::shared_ptr<Device>> open_;
};

}  // namespace

std::shared_ptr<Device> open_device(const std::string& name) {
  static Registry registry;
  std::lock_guard lock(registry.mutex);
  if (auto device = registry.open(name)) return device;
  std::vector<std::string> known;
  for (const auto& row : built_in) known.push_back(row.name);
  for (const auto& platform : xla::platforms()) known.emplace_back(platform.name);
  known.emplace_back(automatic_device);
  std::string list;
  for (const auto& n : known) list += (list.empty() ? "" : ", ") + n;
  fail<InvalidArgument>("device", "unknown device '{}'{}; known: {}, and paths of PJRT plugins", name, did_you_mean(name, known), list);
}

namespace {

Hosts& known_hosts() {
  static Hosts known;
  return known;
}

}  // namespace

void set_hosts(Hosts hosts) { known_hosts() = std::move(hosts); }
const Hosts& hosts() { return known_hosts(); }

std::string kind_of_device(const std::string& name) {
  const auto asked = xla::device_name(name);
  const size_t colon = name.rfind(':');
  if (!asked) return name.substr(0, name.find(':'));
  const bool numbered =
      colon != std::string::npos && colon + 1 < name.size() && name.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return numbered ? name.substr(0, colon) : name;
}

std::string device_after(const std::string& name, size_t count) {
  const auto asked = xla::device_name(name);
  if (!asked || !asked->target.empty()) return kind_of_device(name);
  return fmt::format("{}:{}", kind_of_device(name), asked->index + count);
}

std::vector<DeviceListing> list_devices() {
  std::vector<DeviceListing> out;
  for (const auto& row : built_in) out.push_back({row.name, row.kind, "", "built in", true, 0});
  for (auto& listing : list_xla_devices()) out.push_back(std::move(listing));
  for (auto& listing : out) {
    if (!listing.usable) continue;
    try {
      auto device = open_device(listing.name);
      listing.description = device->description();
      listing.memory_bytes = device->memory_bytes();
    } catch (const DeviceError& e) {
      listing.usable = false;
      listing.found = e.what();
    }
  }
  return out;
}

}  // namespace tutti
