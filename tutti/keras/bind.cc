#include "tutti/keras/bind.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "tutti/base/error.h"

namespace tutti::keras {

namespace {

// Reads a variable's value, cast to its declared dtype; a value that does not fit becomes a problem.
void bind_variable(Variable& variable, const Hdf5File& file, const std::string& dataset, std::vector<std::string>& problems) {
  if (file.kind(dataset) != Hdf5File::Kind::dataset) {
    problems.push_back(fmt::format("[keras] '{}' has no value in the file (looked for {})", variable.path, dataset));
    return;
  }
  Type stored = file.type(dataset);
  if (!(stored.shape == variable.type.shape)) {
    problems.push_back(fmt::format("[keras] '{}' has shape {} in the file, expected {}", variable.path, to_string(stored.shape),
                                   to_string(variable.type.shape)));
    return;
  }
  Tensor value = file.read(dataset);
  variable.value = value.dtype() == variable.type.dtype ? value : value.converted(variable.type.dtype);
}

// The groups of a model.weights.h5, by paths of attributes: "layers/lstm/cell".
class GroupTree {
 public:
  explicit GroupTree(const Hdf5File& file) : file_(file), root_(file.children("")) {
    // Keras 2 on Windows made one flat group of every path: "layers\lstm\cell".
    flat_ = std::any_of(root_.begin(), root_.end(), [](const std::string& name) { return name.find('\\') != std::string::npos; });
  }

  std::string stored(std::string path) const {
    if (flat_) std::replace(path.begin(), path.end(), '/', '\\');
    return path;
  }
  bool has(const std::string& path) const { return file_.kind(stored(path)) == Hdf5File::Kind::group; }
  std::vector<std::string> names_in(const std::string& path) const {
    if (!flat_) return has(path) ? file_.children(path) : std::vector<std::string>{};
    std::string prefix = stored(path) + "\\";
    std::vector<std::string> out;
    for (const std::string& name : root_)
      if (name.starts_with(prefix) && name.find('\\', prefix.size()) == std::string::npos) out.push_back(name.substr(prefix.size()));
    return out;
  }

 private:
  const Hdf5File& file_;
  std::vector<std::string> root_;
  bool flat_ = false;
};

// "dense_12" -> "dense", 12; "dense" -> "dense", 0
std::pair<std::string, int> split_number(const std::string& name) {
  size_t end = name.find_last_not_of("0123456789");
  if (end == std::string::npos || end + 1 == name.size() || name[end] != '_') return {name, 0};
  int number = 0;
  auto parsed = std::from_chars(name.data() + end + 1, name.data() + name.size(), number);
  if (parsed.ec != std::errc()) return {name, 0};
  return {name.substr(0, end), number};
}

// Where the children of a scope lie in a file of Keras 2. Private attributes begin with "_"; the layers of a model are under one of two
// attributes, and some versions counted each layer with weights twice (dense, dense_2, dense_4), so that only their order can be trusted.
class LegacyPaths {
 public:
  LegacyPaths(const GroupTree& tree, const Scope& scope, const std::string& path) : tree_(tree), path_(path) {
    for (const auto& child : scope.children()) {
      auto [list, name] = split_key(child->key());
      if (!list.empty()) keys_[list + "/" + split_number(name).first].push_back(child->key());
    }
  }

  std::string of(const std::string& key) {
    auto [list, name] = split_key(key);
    if (list.empty()) return tree_.has(path_ + key) || !tree_.has(path_ + "_" + key) ? path_ + key : path_ + "_" + key;
    std::string from = list;
    if (list == "layers" && stored_in(list).empty() && !stored_in("_layer_checkpoint_dependencies").empty())
      from = "_layer_checkpoint_dependencies";
    std::string kind = split_number(name).first;
    const auto& wanted = keys_[list + "/" + kind];
    const auto& found = stored_in(from)[kind];
    auto position = static_cast<size_t>(std::find(wanted.begin(), wanted.end(), key) - wanted.begin());
    bool counted = wanted.size() == found.size();
    return path_ + from + "/" + (counted ? found[position] : name);
  }

 private:
  using Kinds = std::map<std::string, std::vector<std::string>>;  // "dense" -> "dense", "dense_2", ...

  static std::pair<std::string, std::string> split_key(const std::string& key) {
    size_t slash = key.rfind('/');
    if (slash == std::string::npos) return {"", key};
    return {key.substr(0, slash), key.substr(slash + 1)};
  }

  Kinds& stored_in(const std::string& list) {
    auto [entry, added] = stored_.try_emplace(list);
    if (added) {
      for (const std::string& name : tree_.names_in(path_ + list)) entry->second[split_number(name).first].push_back(name);
      for (auto& [kind, names] : entry->second)
        std::sort(names.begin(), names.end(),
                  [](const std::string& a, const std::string& b) { return split_number(a).second < split_number(b).second; });
    }
    return entry->second;
  }

  const GroupTree& tree_;
  std::string path_;
  std::map<std::string, std::vector<std::string>> keys_;
  std::map<std::string, Kinds> stored_;
};

class PathBinding {
 public:
  PathBinding(const Hdf5File& file, bool legacy, std::vector<std::string>& problems)
      : file_(file), tree_(file), legacy_(legacy), problems_(problems) {}

  // `path` ends with "/" unless it is empty.
  void bind(Scope& scope, const std::string& path) {
    std::string group = path.empty() ? "" : tree_.stored(path.substr(0, path.size() - 1)) + "/";
    std::string vars = group + "vars";
    size_t declared = scope.variables().size();
    if (declared > 0) {
      size_t stored = file_.kind(vars) == Hdf5File::Kind::group ? file_.children(vars).size() : 0;
      if (stored > declared)
        problems_.push_back(fmt::format("[keras] layer '{}' has {} variables in the file, expected {}", scope.path(), stored, declared));
    }
    for (size_t i = 0, number = 0; i < declared; ++i) {
      Variable& variable = *scope.variables()[i];
      if (variable.is_merged()) {
        variable.value = Tensor(variable.type);
        std::ranges::fill(variable.value.bytes(), std::byte{0});
        continue;
      }
      // By number; a few layers write by name.
      std::string named = vars + "/" + variable.name;
      bool has_name = file_.kind(named) == Hdf5File::Kind::dataset;
      bind_variable(variable, file_, has_name ? named : vars + "/" + std::to_string(number++), problems_);
    }
    std::optional<LegacyPaths> legacy;
    if (legacy_) legacy.emplace(tree_, scope, path);
    for (const auto& child : scope.children()) bind(*child, (legacy ? legacy->of(child->key()) : path + child->key()) + "/");
  }

 private:
  const Hdf5File& file_;
  GroupTree tree_;
  bool legacy_;
  std::vector<std::string>& problems_;
};

// Whether the first variable without a value has the name of one that has it, that of its layer included: Keras keeps a layer of several
// models once, and of one that it came to know inside of a model it forgets to say which it is.
bool is_kept_once(const Scope& model) {
  const auto variables = model.flatten();
  const auto name = [](const Variable* one) {
    const size_t layer = one->path.rfind('/', one->path.size() - one->name.size() - 2);
    return std::string_view(one->path).substr(layer == std::string::npos ? 0 : layer + 1);
  };
  const auto missing = std::find_if(variables.begin(), variables.end(), [](const Variable* one) { return one->value.empty(); });
  return missing != variables.end() && std::any_of(variables.begin(), variables.end(),
                                                   [&](const Variable* one) { return !one->value.empty() && name(one) == name(*missing); });
}

}  // namespace

void bind_by_path(Scope& model, const Hdf5File& file, int keras_major, std::vector<std::string>& problems) {
  const size_t before = problems.size();
  PathBinding(file, keras_major < 3, problems).bind(model, "");
  if (problems.size() > before && is_kept_once(model))
    problems.push_back(
        "[keras] a layer is part of two others, and the file does not say so: Keras itself does not open it; hint: save the model as .h5");
}

namespace {

// The variables in the order of the names that the file gives its weights, when each name fits exactly one of them; else nothing. What was
// frozen when the file was written is not always in its config, and with it goes the order.
std::vector<Variable*> order_by_name(const std::vector<std::string>& names, const std::vector<Variable*>& variables) {
  // Every "/"-suffix of the variables' paths, nullptr where it is ambiguous.
  std::map<std::string_view, Variable*> suffixes, paths;
  auto next_suffix = [](std::string_view path) {
    size_t slash = path.find('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  };
  for (Variable* variable : variables) {
    paths[variable->path] = variable;
    for (std::string_view suffix = variable->path; !suffix.empty(); suffix = next_suffix(suffix))
      if (auto [entry, added] = suffixes.try_emplace(suffix, variable); !added) entry->second = nullptr;
  }
  std::vector<Variable*> out;
  std::set<Variable*> used;
  for (std::string_view name : names) {
    if (size_t colon = name.rfind(':'); colon != std::string_view::npos) name = name.substr(0, colon);
    Variable* found = nullptr;
    if (auto inside = suffixes.find(name); inside != suffixes.end()) found = inside->second;
    for (std::string_view suffix = next_suffix(name); found == nullptr && !suffix.empty(); suffix = next_suffix(suffix))
      if (auto whole = paths.find(suffix); whole != paths.end()) found = whole->second;
    if (found == nullptr || !used.insert(found).second) return {};
    out.push_back(found);
  }
  return out;
}

}  // namespace

void bind_by_order(Scope& model, const Hdf5File& file, int keras_major, std::vector<std::string>& problems) {
  std::string root = file.kind("model_weights") == Hdf5File::Kind::group ? "model_weights" : "";
  for (const auto& layer : model.children()) {
    auto variables = layer->flatten_for_hdf5(keras_major);
    if (variables.empty()) continue;
    std::string group = root.empty() ? layer->path() : root + "/" + layer->path();
    if (file.kind(group) != Hdf5File::Kind::group) {
      problems.push_back(fmt::format("[keras] layer '{}' has no weights in the file", layer->path()));
      continue;
    }
    auto stored = chunked_strings(file, group, "weight_names");
    if (stored.size() != variables.size()) {
      problems.push_back(
          fmt::format("[keras] layer '{}' has {} weights in the file, expected {}", layer->path(), stored.size(), variables.size()));
      continue;
    }
    if (auto named = order_by_name(stored, variables); !named.empty()) variables = named;
    for (size_t i = 0; i < stored.size(); ++i) bind_variable(*variables[i], file, group + "/" + stored[i], problems);
  }
}

std::vector<std::string> chunked_strings(const Hdf5File& file, const std::string& object, const std::string& attribute) {
  if (file.has_attribute(object, attribute)) return file.strings(object, attribute);
  std::vector<std::string> out;
  for (int chunk = 0; file.has_attribute(object, attribute + std::to_string(chunk)); ++chunk) {
    auto part = file.strings(object, attribute + std::to_string(chunk));
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

}  // namespace tutti::keras
