#include "tutti/cli/speeds.h"

#include "tutti/cli/console.h"

namespace tutti::cli {

Json speeds_json(const std::vector<Speed>& speeds) {
  Json out = Json::list();
  for (const Speed& speed : speeds) {
    Json levels = Json::list();
    for (const auto& level : speed.bandwidth)
      levels.push(JsonMembers{{"bytes", level.bytes}, {"bytes_per_second", level.bytes_per_second}});
    out.push(JsonMembers{{"threads", speed.threads},
                         {"flops_per_second", speed.flops_per_second},
                         {"bytes_per_second", speed.bandwidth.empty() ? 0 : speed.bandwidth.back().bytes_per_second},
                         {"bandwidth", levels}});
  }
  return out;
}

std::string speeds_table(const std::vector<Speed>& speeds) {
  std::vector<std::vector<std::string>> rows{{"THREADS", "FLOP/S"}};
  for (const Speed& speed : speeds) {
    auto& row = rows.emplace_back(std::vector{std::to_string(speed.threads), human_count(speed.flops_per_second)});
    for (const auto& level : speed.bandwidth) {
      if (&speed == &speeds[0]) rows[0].push_back(human_bytes(level.bytes));
      row.push_back(human_count(level.bytes_per_second) + "B/s");
    }
  }
  return format_table(rows, std::vector<bool>(rows[0].size(), true));
}

}  // namespace tutti::cli
