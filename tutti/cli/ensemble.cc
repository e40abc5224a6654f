// tutti ensemble
#include "tutti/run/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tutti/base/json.h"
#include "tutti/cli/console.h"
#include "tutti/cli/verbs.h"
#include "tutti/data/csv.h"
#include "tutti/keras/write.h"
#include "tutti/run/ensemble_model.h"
#include "tutti/run/explain.h"
#include "tutti/run/manifest.h"

namespace tutti::cli {

namespace {

namespace fs = std::filesystem;

struct EnsembleSettings {
  std::vector<std::string> members, add, drop, reduce;
  std::string output, weights;
  bool ignore_nan = false;
};

EnsembleOptions options_of(const EnsembleSettings& settings) {
  EnsembleOptions out;
  if (!settings.reduce.empty()) out.reductions = parse_reductions(fmt::format("{}", fmt::join(settings.reduce, ",")));
  out.ignore_nan = settings.ignore_nan;
  for (const auto& part : parts_of(settings.weights, "--weights")) {
    const auto weight = parse_double(part);
    if (!weight) fail<InvalidArgument>("ensemble", "weights are numbers with commas between; got '{}'", settings.weights);
    out.weights.push_back(*weight);
  }
  return out;
}

bool is_same_file(const fs::path& a, const fs::path& b) { return fs::absolute(a).lexically_normal() == fs::absolute(b).lexically_normal(); }

// By its name or its file.
void drop(Manifest& manifest, const std::vector<std::string>& dropped) {
  std::vector<std::string> names = member_names(manifest.members);  // what they are called before any is dropped
  for (const std::string& word : dropped) {
    size_t i = 0;
    while (i < names.size() && names[i] != word && !is_same_file(manifest.members[i], word)) ++i;
    if (i == names.size()) fail<InvalidArgument>("ensemble", "--drop: no member '{}'{}", word, did_you_mean(word, names));
    const auto place = static_cast<std::ptrdiff_t>(i);
    names.erase(names.begin() + place);
    manifest.members.erase(manifest.members.begin() + place);
    if (!manifest.options.weights.empty()) manifest.options.weights.erase(manifest.options.weights.begin() + place);
  }
}

// A manifest with some members more or less; what else is asked for takes the place of what it says.
Manifest changed(const EnsembleSettings& settings, const EnsembleOptions& asked) {
  if (settings.members.size() != 1 || !is_manifest(settings.members[0]))
    throw UsageError("usage", fmt::format("--add and --drop change one manifest (.toml); got {}", fmt::join(settings.members, ", ")));
  Manifest out = read_manifest(settings.members[0]);
  drop(out, settings.drop);
  const auto added = settings.add.empty() ? std::vector<std::string>{} : find_members(settings.add);
  for (const std::string& path : added) {
    if (std::any_of(out.members.begin(), out.members.end(), [&](const auto& one) { return is_same_file(one, path); }))
      fail<InvalidArgument>("ensemble", "--add: '{}' is a member already", path);
    out.members.push_back(path);
  }
  if (!added.empty() && !out.options.weights.empty() && asked.weights.empty())
    fail<InvalidArgument>("ensemble", "the members of '{}' have weights; hint: --weights with those of all {}", settings.members[0],
                          out.members.size());
  if (!settings.reduce.empty()) out.options.reductions = asked.reductions;
  if (!asked.weights.empty()) out.options.weights = asked.weights;
  out.options.ignore_nan |= asked.ignore_nan;
  return out;
}

void make(Console& console, const EnsembleSettings& settings) {
  const bool as_keras = settings.output.ends_with(".keras");
  if (!as_keras && !is_manifest(settings.output))
    throw UsageError("usage",
                     fmt::format("an ensemble is written as .keras (Keras opens it) or .toml (any reduction); got '{}'", settings.output));
  EnsembleOptions options;
  as_usage([&] { options = options_of(settings); });
  const bool changes = !settings.add.empty() || !settings.drop.empty();
  if (as_keras && !changes) require_layers(options);
  const auto [paths, chosen] = changes ? changed(settings, options) : Manifest{find_members(settings.members), options};
  std::vector<Ensemble::Member> members;
  {
    Progress progress(console, "load", static_cast<int64_t>(paths.size()));
    members = load_members(paths, [&](int64_t done, int64_t) { progress.update(done); });
  }
  for (const std::string& path : paths)  // a folder has what was written into it the last time
    if (names_file(path, settings.output))
      fail<InvalidArgument>("ensemble", "'{}' would be a member of itself, by '{}'; hint: another -o, or --add, which changes a manifest",
                            settings.output, path);
  const Ensemble ensemble(std::move(members), chosen);
  const Graph graph = ensemble.lower({1, shapes_with(ensemble, 1, ensemble.probe_extent()), nullptr});  // outputs go together, or it throws
  if (as_keras) {
    keras::write_model(settings.output, as_keras_model(ensemble));
  } else {
    OutputFile file(settings.output);
    file.write(manifest_text(settings.output, paths, chosen));
    file.commit();
  }
  Json inputs = Json::list(), outputs = Json::list();
  for (const auto& input : ensemble.inputs()) inputs.push(input.name);
  for (const auto& output : ensemble.output_names()) outputs.push(output);
  if (console.json)
    console.print(
        Json(JsonMembers{{"file", settings.output}, {"members", ensemble.members().size()}, {"inputs", inputs}, {"outputs", outputs}})
            .dump(2) +
        "\n");
  else if (!console.quiet)
    console.print(fmt::format("{}: {} member{}, output{} {}\n", escape(settings.output), ensemble.members().size(),
                              ensemble.members().size() == 1 ? "" : "s", ensemble.output_names().size() == 1 ? "" : "s",
                              fmt::join(ensemble.output_names(), ", ")));
}

}  // namespace

Action ensemble(Options& options) {
  auto settings = std::make_shared<EnsembleSettings>();
  options.arguments(settings->members, "MODEL",
                    "Members: .keras, .h5 or .hdf5 files, ensembles' .toml, folders of models, or patterns in quotes");
  options.options(settings->reduce, "--reduce", "R",
                  "mean (default), median, min, max, sum, std, var, quantile:0.1,0.9, vote, softvote; several, with commas between, are as "
                  "many outputs");
  options.options(settings->add, "--add", "MODEL",
                  "To the members of MODEL, which is an ensemble's .toml then, this one more; may be given again");
  options.options(settings->drop, "--drop", "NAME",
                  "Of the members of MODEL not this one, by its name in inspect or by its file; may be given again");
  options.option(settings->weights, "--weights", "W,W,...", "One a member, for mean and votes; they need not sum to 1");
  options.flag(settings->ignore_nan, "--ignore-nan", "Reduce over the members that give a number");
  options.option(settings->output, "-o,--output", "OUT",
                 ".keras, which Keras opens (mean, min, max, sum), or .toml, which names the members (any reduction)");
  options.footer(
      "Example: tutti ensemble a.keras b.h5 --reduce mean,std -o both.toml\n"
      "         tutti ensemble both.toml --add c.keras --drop a -o both.toml");
  return [settings](Console& console) {
    if (settings->output.empty()) throw UsageError("usage", "-o OUT is needed: where to write the ensemble; hint: tutti ensemble --help");
    make(console, *settings);
  };
}

}  // namespace tutti::cli
