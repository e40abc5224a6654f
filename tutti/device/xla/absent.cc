// Instead of the other files, where the build found no pjrt_c_api.h.
#include "tutti/base/error.h"
#include "tutti/device/xla/plugins.h"
#include "tutti/device/xla/xla.h"

namespace tutti {

namespace {

constexpr std::string_view why_absent =
    "this program was built without the xla device: there was no pjrt_c_api.h; hint: ./x install xla, then ./x build";

}  // namespace

std::unique_ptr<Device> make_xla_device(const std::string& name) { fail<DeviceError>(name, "{}", why_absent); }

std::vector<DeviceListing> list_xla_devices() {
  std::vector<DeviceListing> out;
  for (const auto& platform : xla::platforms()) out.push_back({std::string(platform.name), "", "", std::string(why_absent), false, 0});
  return out;
}

}  // namespace tutti
