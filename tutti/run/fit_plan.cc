#include "tutti/run/fit_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/base/stopwatch.h"

namespace tutti {

namespace {

constexpr std::pair<std::string_view, FitArrangement> fit_arrangements[] = {
    {"auto", FitArrangement::measured}, {"separate", FitArrangement::separate}, {"stacked", FitArrangement::stacked}};

// Seconds a step: above, a program does not wait for its own start, and stacking it takes long to compile.
constexpr double long_enough_step = 2e-3;
// Members of a team that are tried: more share the cost of a step's start, fewer stay in a core's cache.
constexpr size_t sizes[] = {8, 32, 128};
// Trying is a part of the run: each way is timed for a fiftieth of what the jobs take one by one, within these bounds in seconds, and no
// other size is tried once all that was, compilation included, has taken a tenth.
constexpr double least_trial = 1e-3, most_trial = 0.02, part_of_work = 0.02, most_of_work = 0.1;

std::vector<size_t> first_members(size_t count) {
  std::vector<size_t> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

double seconds_of_all(const FitGroup& group, double step, size_t at_once) {
  double steps = 0;
  for (const Trainer* trainer : group.members()) steps += static_cast<double>(trainer->expected_steps());
  return steps * step / static_cast<double>(at_once);
}

Json kind_json(const StepKind& kind) { return JsonList{kind.training, kind.batch, kind.steps}; }

}  // namespace

std::string_view name(FitArrangement arrangement) {
  for (const auto& [name, value] : fit_arrangements)
    if (value == arrangement) return name;
  fail<InternalError>("fit", "an arrangement without a name");
}

const std::vector<std::string>& fit_arrangement_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& [name, value] : fit_arrangements) out.emplace_back(name);
    return out;
  }();
  return names;
}

FitArrangement fit_arrangement_of(std::string_view name) {
  for (const auto& [known, value] : fit_arrangements)
    if (known == name) return value;
  fail<InvalidArgument>("fit", "no plan '{}'{}", name, did_you_mean(name, fit_arrangement_names()));
}

Json FitPlan::json() const {
  Json members = Json::list(), measured = Json::list(), kinds = Json::list();
  for (const auto& job : jobs) members.push(job);
  for (const Time& time : times) measured.push(JsonMembers{{"together", static_cast<int64_t>(time.together)}, {"us", time.seconds * 1e6}});
  for (const StepKind& kind : by_one) kinds.push(kind_json(kind));
  return JsonMembers{{"jobs", members},
                     {"how", stacked ? "stacked" : "separate"},
                     {"together", static_cast<int64_t>(together)},
                     {"by_one", kinds},
                     {"reason", reason},
                     {"us_per_step", measured}};
}

FitPlan FitPlan::from(const Json& json) {
  FitPlan out;
  for (const Json& job : json.at("jobs").items()) out.jobs.push_back(job.as_string());
  out.stacked = json.at("how").as_string() == "stacked";
  const int64_t together = json.at("together").as_int();
  if (together < 1 || together > (int64_t{1} << 20)) fail<InvalidArgument>("fit", "a plan has {} jobs together", together);
  out.together = static_cast<size_t>(together);
  for (const Json& kind : json.at("by_one").items()) out.by_one.insert({kind[0].as_bool(), kind[1].as_int(), kind[2].as_int()});
  out.reason = "as in the run that is gone on with";
  return out;
}

std::vector<FitPlan> read_plans(const std::string& path) {
  const auto bytes = read_all(*open_file(path), 256 << 20);
  std::vector<FitPlan> out;
  const Json plans = Json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const Json& plan : plans.items()) out.push_back(FitPlan::from(plan));
  return out;
}

void write_plans(const std::string& path, const std::vector<FitPlan>& plans) {
  Json all = Json::list();
  for (const FitPlan& plan : plans) all.push(plan.json());
  OutputFile file(path);
  file.write(all.dump() + "\n");
  file.commit();
}

FitPlan plan_fit(const std::shared_ptr<SharedPrograms>& programs, FitArrangement wanted, size_t at_once) {
  const FitGroup& group = programs->group();
  const size_t count = group.members().size(), largest = (count + at_once - 1) / at_once;
  FitPlan out;
  for (const Trainer* trainer : group.members()) out.jobs.push_back(trainer->job().name);
  // What half of the jobs never ask for is not worth everybody's time.
  for (const auto& [kind, members] : group.kinds())
    if (2 * members < count) out.by_one.insert(kind);
  if (wanted == FitArrangement::stacked) {
    out.stacked = true;
    out.together = largest;
    out.reason = "asked for";
    return out;
  }
  if (wanted == FitArrangement::separate || largest < 2) {
    out.reason = wanted == FitArrangement::separate ? "asked for" : count == 1 ? "no other job is like it" : "a thread for each";
    return out;
  }
  if (!programs->computes()) {
    out.stacked = true;
    out.together = count;
    out.reason = fmt::format("{} does not compute, so the fewest kernels count", programs->device()->name());
    return out;
  }
  const Stopwatch trying;
  FitTeam one(programs, first_members(1), false);
  out.times.push_back({1, one.measure(least_trial)});
  const double work = seconds_of_all(group, out.times[0].seconds, at_once);
  const double trial = std::clamp(part_of_work * work, least_trial, most_trial);
  if (trial > least_trial) out.times[0].seconds = std::min(out.times[0].seconds, one.measure(trial));
  if (out.times[0].seconds > long_enough_step) {
    out.reason = fmt::format("a step takes {:.1f} ms, so stacking gains little", out.times[0].seconds * 1e3);
    return out;
  }
  std::vector<size_t> tried;
  for (size_t size : sizes)
    if (size < largest) tried.push_back(size);
  tried.push_back(largest);
  for (size_t size : tried) {
    if (out.times.size() > 1 && trying.seconds() > most_of_work * work) break;
    out.times.push_back({size, FitTeam(programs, first_members(size), true).measure(trial)});
  }
  const auto best =
      std::min_element(out.times.begin(), out.times.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  out.stacked = best->together > 1;
  out.together = best->together;
  programs->keep_stacked(out.stacked ? out.together : 0);
  return out;
}

}  // namespace tutti
