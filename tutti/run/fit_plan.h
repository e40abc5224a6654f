// How the jobs of a group are trained: each by itself, or several stacked in one program; whichever is faster on the device.
#pragma once

#include "tutti/base/json.h"
#include "tutti/run/fit_team.h"

namespace tutti {

enum class FitArrangement { measured, separate, stacked };
std::string_view name(FitArrangement arrangement);
FitArrangement fit_arrangement_of(std::string_view name);  // throws InvalidArgument for other words
const std::vector<std::string>& fit_arrangement_names();

struct FitPlan {
  std::vector<std::string> jobs;
  bool stacked = false;
  size_t together = 1;        // members of a team
  std::set<StepKind> by_one;  // as FitTeam takes it
  std::string reason;         // why, when nothing was measured
  struct Time {
    size_t together;  // 1: separate
    double seconds;   // of one job's step, on one thread
  };
  std::vector<Time> times;

  Json json() const;
  // What json() gave, of a run that is gone on with: the same plan gives the same bits. Throws InvalidArgument.
  static FitPlan from(const Json& json);
};

// All of a run, in a file.
std::vector<FitPlan> read_plans(const std::string& path);
void write_plans(const std::string& path, const std::vector<FitPlan>& plans);

// For a group whose teams run on so many threads side by side.
FitPlan plan_fit(const std::shared_ptr<SharedPrograms>& programs, FitArrangement wanted, size_t at_once);

}  // namespace tutti
