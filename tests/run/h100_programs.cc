#include "tests/run/h100_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/fit/fit_case.h"
#include "tutti/base/error.h"
#include "tutti/run/ensemble.h"
#include "tutti/run/explain.h"
#include "tutti/transform/stack.h"

namespace tutti {

namespace {

namespace fs = std::filesystem;

constexpr const char* h100 = "cuda@h100";
constexpr int members = 4, stacked_models = 32, replicas = 2;
const fs::path keras_cases = TUTTI_TEST_DATA "/keras_cases", fit_cases = TUTTI_TEST_DATA "/fit_cases";

bool is_ensembles(const std::string& group) { return group == "ensembles"; }
bool is_steps(const std::string& group) { return group.ends_with("steps"); }

std::vector<std::string> folders_in(const fs::path& parent) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(parent))
    if (entry.is_directory() && !entry.path().filename().string().starts_with(".")) out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

std::string file_of(const fs::path& folder) {
  for (const char* name : {"model.keras", "model.h5"})
    if (fs::exists(folder / name)) return folder / name;
  return "";
}

void add_classes(const Json& config, std::set<std::string>& to) {
  if (config.is_list())
    for (const Json& item : config.items()) add_classes(item, to);
  if (!config.is_object()) return;
  if (const Json* found = config.find("class_name"); found != nullptr && found->is_string()) to.insert(found->as_string());
  for (const auto& [key, value] : config.members()) add_classes(value, to);
}

std::set<std::string> layers_of(const std::string& file) {
  std::set<std::string> out;
  try {
    add_classes(keras::load(file).config(), out);
  } catch (const Error&) {  // refused by design
  }
  return out;
}

// With the shapes of the case's own data.
std::optional<int64_t> kernels_of_case(const fs::path& folder, bool is_ensemble) {
  const std::string file = file_of(folder);
  if (file.empty() || !fs::exists(folder / "data.npz")) return {};  // Keras, too, refuses it
  auto model = std::make_shared<const keras::Model>(keras::load(file));
  if (!model->problems().empty()) return {};
  const NpzReader data((folder / "data.npz").string());
  CompileOptions options{.device = h100, .arrangement = Arrangement::stacked};
  for (const Tensor& input : numbered_arrays(data, "in_")) options.input_shapes.push_back(input.shape());
  options.batch = options.input_shapes.at(0)[0];
  if (!is_ensemble) return explain(*model, options).stats.kernels;
  std::vector<Ensemble::Member> all = {{"m0", model}};
  for (int m = 1; m < members; ++m)
    all.push_back({fmt::format("m{}", m), std::make_shared<const keras::Model>(with_other_weights(file, m))});
  return explain(Ensemble(all, {}), options).stats.kernels;
}

int64_t kernels_of_step(const std::string& group, const fs::path& folder) {
  const auto device = open_device(h100);
  FitCase one(folder);
  CompileSettings settings;
  if (group == "replicated_steps") {
    one.options.is_part = true;
    one.options.replicas = replicas;
    settings.replicas.assign(replicas, device);
  }
  Graph graph = one.step_graph(one.facts.at("batch").as_int());
  if (group == "stacked_steps")
    graph = stack_models(graph, stacked_models,
                         [](const Node& state) { return Tensor::stacked(std::vector<Tensor>(stacked_models, state.literal)); });
  return explain(graph, device, settings).stats.kernels;
}

fs::path record_of(const std::string& group) { return fs::path(TUTTI_SOURCE_DIR "/tests/run/h100") / (group + ".txt"); }

}  // namespace

std::vector<std::string> h100_groups() {
  std::vector<std::string> out = folders_in(keras_cases);
  out.insert(out.end(), {"ensembles", "steps", "stacked_steps", "replicated_steps"});
  return out;
}

std::vector<std::string> h100_programs(const std::string& group) {
  if (is_steps(group)) return folders_in(fit_cases);
  if (!is_ensembles(group)) return folders_in(keras_cases / group);
  std::vector<std::string> out;
  std::set<std::set<std::string>> seen;
  for (const std::string family : {"convolution", "core", "forecasting", "recurrent", "transformers"})
    for (const std::string& name : folders_in(keras_cases / family))
      if (const auto file = file_of(keras_cases / family / name); !file.empty() && seen.insert(layers_of(file)).second)
        out.push_back(family + "/" + name);
  return out;
}

std::optional<int64_t> h100_kernels(const std::string& group, const std::string& program) {
  if (is_steps(group)) return kernels_of_step(group, fit_cases / program);
  return is_ensembles(group) ? kernels_of_case(keras_cases / program, true) : kernels_of_case(keras_cases / group / program, false);
}

std::map<std::string, int64_t> recorded_h100_kernels(const std::string& group) {
  std::map<std::string, int64_t> out;
  std::ifstream file(record_of(group));
  std::string program;
  for (int64_t kernels = 0; file >> program >> kernels;) out[program] = kernels;
  return out;
}

void record_h100_kernels(const std::string& group, const std::map<std::string, int64_t>& kernels) {
  std::ofstream file(record_of(group));
  for (const auto& [program, count] : kernels) file << program << " " << count << "\n";
}

}  // namespace tutti
