#include "tutti/cli/stage_summary.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/cli/console.h"

namespace tutti::cli {

namespace {

double busy_a_thread(const StageCounters& stage) { return stage.busy / static_cast<double>(stage.threads); }

const StageCounters& busiest(const std::vector<StageCounters>& stages) {
  return *std::max_element(stages.begin(), stages.end(),
                           [](const StageCounters& a, const StageCounters& b) { return busy_a_thread(a) < busy_a_thread(b); });
}

}  // namespace

std::string stage_table(const std::vector<StageCounters>& stages, double seconds) {
  std::vector<std::vector<std::string>> rows{
      {"STAGE", "THREADS", "DONE", "BUSY", "WAITS FOR INPUT", "WAITS FOR OUTPUT", "QUEUE", "DEEPEST"}};
  const auto share = [&](const StageCounters& stage, double part) {
    return fmt::format("{:.0f}%", 100 * part / std::max(seconds * static_cast<double>(stage.threads), 1e-9));
  };
  for (const StageCounters& stage : stages)
    rows.push_back({stage.name, std::to_string(stage.threads), grouped(stage.items), share(stage, stage.busy),
                    share(stage, stage.waiting_for_input), share(stage, stage.waiting_for_output), std::to_string(stage.queue),
                    std::to_string(stage.deepest)});
  return format_table(rows, {false, true, true, true, true, true, true, true}) + stage_advice(stages, seconds);
}

Json stage_json(const std::vector<StageCounters>& stages) {
  Json out = Json::list();
  for (const StageCounters& stage : stages)
    out.push(JsonMembers{{"name", stage.name},
                         {"threads", stage.threads},
                         {"items", stage.items},
                         {"busy_seconds", stage.busy},
                         {"waiting_for_input_seconds", stage.waiting_for_input},
                         {"waiting_for_output_seconds", stage.waiting_for_output},
                         {"queue", stage.queue},
                         {"deepest", stage.deepest}});
  return out;
}

std::string bottleneck(const std::vector<StageCounters>& stages) {
  return busiest(stages).name == "workers" ? "preprocessing bound" : busiest(stages).name + " bound";
}

std::string stage_advice(const std::vector<StageCounters>& stages, double seconds) {
  const StageCounters* most = &busiest(stages);
  const std::string share = fmt::format("{:.0f}% busy", 100 * busy_a_thread(*most) / std::max(seconds, 1e-9));
  if (most->name == "workers")
    return fmt::format("preprocessing bound: {} workers {}; more cores or a faster decoder would help, a faster device would not",
                       most->threads, share);
  if (most->name == "device") return fmt::format("device bound: {}; a faster device would help, more workers would not", share);
  if (most->name == "source") return fmt::format("source bound: {}; items come too slowly", share);
  return fmt::format("writer bound: {}; a faster disk would help", share);
}

}  // namespace tutti::cli
