#include "tutti/run/forget_results.h"

#include <filesystem>
#include <set>

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

void clear_checkpoints(const std::string& folder) {
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string(); name.starts_with("checkpoint.") || name.ends_with(".part"))
      left.push_back(entry.path());
  for (const fs::path& path : left) fs::remove(path);
  fs::remove(folder + "/checkpoint");
}

}  // namespace tutti
