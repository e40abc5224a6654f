// The page of a run of training: curves of all jobs, and a table of them, best first. Whole in itself, light and dark, readable without its
// script; for one job or a thousand. Text from files is escaped.
#pragma once

#include <string>
#include <vector>

namespace tutti {

struct ReportedJob {
  std::string name, stopped_because, error;
  int64_t steps = 0;
  double seconds = 0;
  std::vector<std::string> columns;          // of the history
  std::vector<std::vector<double>> history;  // a row an epoch
};

struct FitFacts {
  std::string device;
  double seconds = 0;  // of training
  std::vector<std::string> plans;
};

std::string fit_page(const std::vector<ReportedJob>& jobs, const FitFacts& facts);

}  // namespace tutti
