#include "tutti/run/manifest.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/base/toml.h"
#include "tutti/run/weight_pool.h"

namespace tutti {

namespace {

namespace fs = std::filesystem;

constexpr size_t most_members = 100'000;  // in all manifests of an ensemble together
constexpr int deepest = 8;                // manifests within manifests

bool has_extension(const fs::path& path, std::initializer_list<std::string_view> extensions) {
  const std::string own = path.extension().string();
  return std::find(extensions.begin(), extensions.end(), own) != extensions.end();
}

bool is_model_name(const fs::path& path) { return has_extension(path, {".keras", ".h5", ".hdf5"}); }

// The entries of a folder that `wanted` takes, by name.
template <class F>
std::vector<std::string> entries(const fs::path& folder, F&& wanted) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder.empty() ? fs::path(".") : folder, error), end; !error && it != end; it.increment(error))
    if (wanted(it->path())) out.push_back((folder / it->path().filename()).string());
  if (error) fail<InvalidArgument>("ensemble", "cannot read the folder '{}': {}", folder.string(), error.message());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> expand(const std::string& name) {
  std::error_code error;
  const fs::path path(name);
  if (fs::is_directory(path, error)) {
    auto found = entries(path, is_model_name);
    if (found.empty()) fail<InvalidArgument>("ensemble", "the folder '{}' has no .keras, .h5 or .hdf5 file", name);
    return found;
  }
  if (name.find_first_of("*?[") == std::string::npos || fs::exists(path, error)) return {name};
  const fs::path folder = path.parent_path();
  if (folder.string().find_first_of("*?[") != std::string::npos && !fs::is_directory(folder, error))
    fail<InvalidArgument>("ensemble", "a pattern may stand for file names, not for folders; got '{}'", name);
  auto found = entries(folder, [&](const fs::path& entry) {
    return fnmatch(path.filename().c_str(), entry.filename().c_str(), FNM_PERIOD) == 0 && !fs::is_directory(entry, error);
  });
  if (found.empty()) fail<InvalidArgument>("ensemble", "no file fits '{}'", name);
  return found;
}

// Where the loading of manifests within manifests stands.
struct Nesting {
  int depth = 0;
  size_t* members;  // found so far, in all
};

std::vector<Ensemble::Member> load_all(const std::vector<std::string>& paths, const LoadProgress& progress, Nesting at);

std::vector<std::string> texts(const Json& value, const char* key) {
  std::vector<std::string> out;
  if (value.is_string()) return {value.as_string()};
  if (!value.is_list()) fail<InvalidArgument>("ensemble", "{} is a text or a list of texts; got {}", key, value.kind());
  for (const Json& item : value.items()) {
    if (!item.is_string()) fail<InvalidArgument>("ensemble", "{} is a list of texts; got {} in it", key, item.kind());
    out.push_back(item.as_string());
  }
  return out;
}

EnsembleOptions options_of(const Json& manifest) {
  EnsembleOptions out;
  if (const Json* reduce = manifest.find("reduce")) {
    const auto parts = texts(*reduce, "reduce");
    if (parts.empty()) fail<InvalidArgument>("ensemble", "reduce names at least one reduction");
    out.reductions = parse_reductions(fmt::format("{}", fmt::join(parts, ",")));
  }
  if (const Json* weights = manifest.find("weights")) {
    if (!weights->is_list()) fail<InvalidArgument>("ensemble", "weights is a list of numbers; got {}", weights->kind());
    for (const Json& weight : weights->items()) {
      if (!weight.is_number()) fail<InvalidArgument>("ensemble", "weights is a list of numbers; got {} in it", weight.kind());
      out.weights.push_back(weight.as_number());
    }
  }
  if (const Json* ignore = manifest.find("ignore_nan")) {
    if (!ignore->is_bool()) fail<InvalidArgument>("ensemble", "ignore_nan is true or false; got {}", ignore->kind());
    out.ignore_nan = ignore->as_bool();
  }
  return out;
}

// What `make` makes of a manifest; errors name the file.
template <class F>
auto with_manifest(const std::string& path, F&& make) {
  const auto bytes = read_all(*open_file(path), 16 << 20);
  try {
    const Json manifest = parse_toml({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const std::vector<std::string> known{"members", "reduce", "weights", "ignore_nan"};
    for (const auto& [key, value] : manifest.members())
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail<InvalidArgument>("ensemble", "a manifest has no key '{}'{}", key, did_you_mean(key, known));
    const Json* members = manifest.find("members");
    if (members == nullptr) fail<InvalidArgument>("ensemble", "a manifest has the key members: a list of model files");
    std::vector<std::string> names;
    for (const auto& name : texts(*members, "members")) names.push_back((fs::path(path).parent_path() / name).string());
    return make(Manifest{find_members(names), options_of(manifest)});
  } catch (const InvalidArgument& e) {
    const std::string_view text = e.what();
    if (text.starts_with("[ensemble] '")) throw;  // names a file already
    fail<InvalidArgument>("ensemble", "'{}': {}", path, text.substr(std::min(text.size(), text.find("] ") + 2)));
  }
}

std::shared_ptr<const Ensemble> load_manifest_within(const std::string& path, const LoadProgress& progress, Nesting at) {
  if (at.depth > deepest) fail<InvalidArgument>("ensemble", "'{}' is within {} other manifests: do they name each other?", path, deepest);
  return with_manifest(path, [&](const Manifest& manifest) {
    return std::make_shared<const Ensemble>(load_all(manifest.members, progress, at), manifest.options);
  });
}

void refuse_more_members() { fail<InvalidArgument>("ensemble", "an ensemble has at most {} members", most_members); }

std::vector<Ensemble::Member> load_all(const std::vector<std::string>& paths, const LoadProgress& progress, Nesting at) {
  if (*at.members += paths.size(); *at.members > most_members) refuse_more_members();
  const auto names = member_names(paths);
  std::vector<Ensemble::Member> out;
  WeightPool pool(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    if (is_manifest(paths[i])) {
      out.push_back({names[i], load_manifest_within(paths[i], {}, {at.depth + 1, at.members})});
    } else {
      auto model = std::make_shared<const keras::Model>(keras::load(paths[i]));
      pool.add(*model);
      out.push_back({names[i], std::move(model)});
    }
    if (progress) progress(static_cast<int64_t>(i + 1), static_cast<int64_t>(paths.size()));
  }
  return out;
}

bool is_or_names(const std::string& path, const std::string& file, int depth) {
  std::error_code error;
  if (fs::equivalent(path, file, error)) return true;
  if (!is_manifest(path) || depth > deepest) return false;
  const auto members = read_manifest(path).members;
  return std::any_of(members.begin(), members.end(), [&](const auto& member) { return is_or_names(member, file, depth + 1); });
}

// As a manifest in `folder` names it. Behind a folder that is a link ".." leads elsewhere: then by where the folders really are.
std::string member_path(const fs::path& folder, const std::string& member) {
  const fs::path whole = fs::absolute(member), from = fs::absolute(folder / ".");
  std::error_code error;
  const fs::path plain = whole.lexically_normal().lexically_relative(from.lexically_normal().parent_path());
  if (fs::equivalent(folder / plain, member, error)) return plain.string();
  const fs::path real = fs::weakly_canonical(whole.parent_path(), error) / whole.filename();
  return real.lexically_relative(fs::weakly_canonical(from, error)).string();
}

}  // namespace

std::vector<std::string> find_members(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const auto& name : names) {
    auto found = expand(name);
    out.insert(out.end(), found.begin(), found.end());
    if (out.size() > most_members) refuse_more_members();
  }
  if (out.empty()) fail<InvalidArgument>("ensemble", "an ensemble has at least one member");
  return out;
}

std::vector<std::string> member_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const auto& path : paths) names.push_back(fs::path(path).stem().string());
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("{}_{}", names[i], i);
  return names;
}

std::vector<Ensemble::Member> load_members(const std::vector<std::string>& paths, const LoadProgress& progress) {
  size_t found = 0;
  return load_all(paths, progress, {0, &found});
}

bool is_manifest(const std::string& path) { return has_extension(path, {".toml"}); }

Manifest read_manifest(const std::string& path) {
  return with_manifest(path, [](Manifest manifest) { return manifest; });
}

std::shared_ptr<const Ensemble> load_manifest(const std::string& path, const LoadProgress& progress) {
  size_t found = 0;
  return load_manifest_within(path, progress, {0, &found});
}

bool names_file(const std::string& path, const std::string& file) { return is_or_names(path, file, 0); }

std::string manifest_text(const std::string& path, const std::vector<std::string>& members, const EnsembleOptions& options) {
  const fs::path folder = fs::path(path).parent_path();
  Json files = Json::list(), reductions = Json::list(), weights = Json::list();
  for (const auto& member : members) files.push(member_path(folder, member));
  for (const auto& reduction : options.reductions) reductions.push(reduction.text());
  for (double weight : options.weights) weights.push(weight);
  std::string out = "members = [\n";
  for (const Json& file : files.items()) out += "  " + toml_text(file) + ",\n";
  out += "]\nreduce = " + toml_text(reductions) + "\n";
  if (!options.weights.empty()) out += "weights = " + toml_text(weights) + "\n";
  if (options.ignore_nan) out += "ignore_nan = true\n";
  return out;
}

}  // namespace tutti
