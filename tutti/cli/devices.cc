// tutti devices
#include "tutti/base/json.h"
#include "tutti/cli/console.h"
#include "tutti/cli/verbs.h"
#include "tutti/device/device.h"

namespace tutti::cli {

namespace {

void print_devices(Console& console) {
  auto listings = list_devices();
  if (console.json) {
    Json list = Json::list();
    for (const auto& device : listings)
      list.push(JsonMembers{{"name", device.name},
                            {"kind", device.kind},
                            {"usable", device.usable},
                            {"memory_bytes", device.memory_bytes},
                            {"found", device.found},
                            {"description", device.description}});
    console.print(Json(JsonMembers{{"devices", list}}).dump(2) + "\n");
    return;
  }
  std::vector<std::vector<std::string>> rows{{"DEVICE", "KIND", "MEMORY", "USABLE", "FOUND", "DESCRIPTION"}};
  for (const auto& device : listings)
    rows.push_back({device.name, device.kind, device.memory_bytes > 0 ? human_bytes(device.memory_bytes) : "-",
                    device.usable ? "yes" : "no", device.found, device.description});
  console.print(format_table(rows, {false, false, true, false, false, false}));
}

}  // namespace

Action devices(Options&) { return print_devices; }

}  // namespace tutti::cli
