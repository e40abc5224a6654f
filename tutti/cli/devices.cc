// tutti devices
#include "tutti/base/json.h"
#include "tutti/cli/console.h"
#include "tutti/cli/speeds.h"
#include "tutti/cli/verbs.h"
#include "tutti/device/host.h"

namespace tutti::cli {

namespace {

// With one thread, and with all.
std::vector<Speed> measure_machine() {
  auto device = open_device(std::string(default_device));
  std::vector<Speed> out{*device->measure(1)};
  if (const int threads = thread_limit(); threads > 1) out.push_back(*device->measure(threads));
  return out;
}

void print_devices(Console& console, bool measure) {
  auto listings = list_devices();
  std::vector<Speed> speeds;
  if (measure) speeds = measure_machine();
  if (console.json) {
    Json list = Json::list();
    for (const auto& device : listings)
      list.push(JsonMembers{{"name", device.name},
                            {"kind", device.kind},
                            {"usable", device.usable},
                            {"memory_bytes", device.memory_bytes},
                            {"found", device.found},
                            {"description", device.description}});
    Json out = JsonMembers{{"devices", list}};
    if (measure) out.set("measured", speeds_json(speeds));
    console.print(out.dump(2) + "\n");
    return;
  }
  std::vector<std::vector<std::string>> rows{{"DEVICE", "KIND", "MEMORY", "USABLE", "FOUND", "DESCRIPTION"}};
  for (const auto& device : listings)
    rows.push_back({device.name, device.kind, device.memory_bytes > 0 ? human_bytes(device.memory_bytes) : "-",
                    device.usable ? "yes" : "no", device.found, device.description});
  console.print(format_table(rows, {false, false, true, false, false, false}));
  if (measure)
    console.print("\nThis processor: f32 multiply-adds (two FLOPs), and bytes read of so many, again and again:\n" + speeds_table(speeds));
}

}  // namespace

Action devices(Options& options) {
  auto measure = std::make_shared<bool>(false);
  options.flag(*measure, "--measure", "Measure the processor as well: FLOP/s, and bytes/s of its caches and memory");
  options.footer(
      "Plugins of accelerators are looked for in TUTTI_PJRT_PLUGIN_PATH (plugins, folders, Python environments, with : between), in the "
      "active Python environment, and where the build put them.");
  return [measure](Console& console) { print_devices(console, *measure); };
}

}  // namespace tutti::cli
