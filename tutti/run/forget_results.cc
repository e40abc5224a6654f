#include "tutti/run/forget_results.h"

#include <filesystem>
#include <set>

#include "tutti/base/error.h"
#include "tutti/data/csv.h"

namespace tutti {

namespace fs = std::filesystem;

void forget_results(const std::vector<std::string>& folders, const std::vector<FitJob>& jobs) {
  std::error_code error;
  std::set<fs::path> models;
  for (const FitJob& job : jobs)
    if (!job.model.empty()) models.insert(fs::weakly_canonical(job.model, error));
  for (const fs::path folder : folders)
    for (const char* name : {"checkpoint", "checkpoint.before", "checkpoint.next", "model.keras", "history.csv", "steps.csv", "labels.txt"})
      if (const fs::path path = folder / name; fs::exists(path, error) && !models.contains(fs::weakly_canonical(path, error)))
        fs::remove(path, error);
}

void remember_history(const std::string& folder, FitResult& result) {
  try {
    CsvReader file(folder + "/history.csv", CsvHeader::present);
    const std::vector<std::string>& names = file.names();
    if (names.size() < 2 || names[0] != "epoch" || names[1] != "loss") return;
    std::vector<std::vector<double>> history;
    for (Tensor row = file.next(1, DType::f64); row.shape()[0] > 0; row = file.next(1, DType::f64)) {
      const auto numbers = row.as<double>();
      history.emplace_back(numbers.begin() + 1, numbers.end());
    }
    if (history.empty()) return;
    result.columns = {names.begin() + 1, names.end()};
    result.loss = history.back()[0];
    result.history = std::move(history);
  } catch (const Error&) {
  }
}

void clear_checkpoints(const std::string& folder) {
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string(); name.starts_with("checkpoint.") || name.ends_with(".part"))
      left.push_back(entry.path());
  for (const fs::path& path : left) fs::remove(path);
  fs::remove(folder + "/checkpoint");
}

}  // namespace tutti
