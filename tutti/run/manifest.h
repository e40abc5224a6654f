// Ensemble files: a TOML manifest that names members, how to reduce them, and their weights.
#pragma once

#include <functional>

#include "tutti/run/ensemble.h"

namespace tutti {

// Called while members are loaded, with how many are and of how many.
using LoadProgress = std::function<void(int64_t, int64_t)>;

// Files for names that may be files, folders (every model in them, in order of names) or patterns (*, ?). Throws InvalidArgument for a name
// that stands for nothing.
std::vector<std::string> find_members(const std::vector<std::string>& names);

// Models from files, weights held once: WeightPool.
std::vector<Ensemble::Member> load_members(const std::vector<std::string>& paths, const LoadProgress& progress = {});

// What members are called: their files' names, as short as they are different.
std::vector<std::string> member_names(const std::vector<std::string>& paths);

struct Manifest {
  std::vector<std::string> members;  // files
  EnsembleOptions options;
};

bool is_manifest(const std::string& path);  // by its name: .toml
Manifest read_manifest(const std::string& path);
std::shared_ptr<const Ensemble> load_manifest(const std::string& path, const LoadProgress& progress = {});

// Whether a member's file is `file`, or a manifest that has it among its members, however deep.
bool names_file(const std::string& path, const std::string& file);

// What load_manifest() reads; paths of members relative to where the manifest is.
std::string manifest_text(const std::string& path, const std::vector<std::string>& members, const EnsembleOptions& options);

}  // namespace tutti
