// tutti ensemble
#include "tutti/run/ensemble.h"

#include <fmt/format.h>

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

struct EnsembleSettings {
  std::vector<std::string> members, reduce;
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

void make(Console& console, const EnsembleSettings& settings) {
  const bool as_keras = settings.output.ends_with(".keras");
  if (!as_keras && !is_manifest(settings.output))
    throw UsageError("usage",
                     fmt::format("an ensemble is written as .keras (Keras opens it) or .toml (any reduction); got '{}'", settings.output));
  EnsembleOptions options;
  as_usage([&] { options = options_of(settings); });
  if (as_keras) require_layers(options);
  const auto paths = find_members(settings.members);
  std::vector<Ensemble::Member> members;
  {
    Progress progress(console, "load", static_cast<int64_t>(paths.size()));
    members = load_members(paths, [&](int64_t done, int64_t) { progress.update(done); });
  }
  const Ensemble ensemble(std::move(members), options);
  const Graph graph = ensemble.lower({1, shapes_with(ensemble, 1, ensemble.probe_extent()), nullptr});  // outputs go together, or it throws
  if (as_keras) {
    keras::write_model(settings.output, as_keras_model(ensemble));
  } else {
    OutputFile file(settings.output);
    file.write(manifest_text(settings.output, paths, options));
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
  options.option(settings->weights, "--weights", "W,W,...", "One a member, for mean and votes; they need not sum to 1");
  options.flag(settings->ignore_nan, "--ignore-nan", "Reduce over the members that give a number");
  options.option(settings->output, "-o,--output", "OUT",
                 ".keras, which Keras opens (mean, min, max, sum), or .toml, which names the members (any reduction)");
  options.footer("Example: tutti ensemble a.keras b.h5 --reduce mean,std -o both.toml");
  return [settings](Console& console) {
    if (settings->output.empty()) throw UsageError("usage", "-o OUT is needed: where to write the ensemble; hint: tutti ensemble --help");
    make(console, *settings);
  };
}

}  // namespace tutti::cli
