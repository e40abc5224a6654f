#include "tutti/cli/model_argument.h"

#include "tutti/cli/console.h"
#include "tutti/run/arrange.h"

namespace tutti::cli {

std::shared_ptr<const keras::AnyModel> load_with_progress(Console& console, const std::string& path) {
  const Stopwatch watch;
  std::optional<Progress> progress;
  auto model = load_model(path, [&](int64_t done, int64_t total) {
    if (!progress) progress.emplace(console, "load", total);
    progress->update(done);
  });
  progress.reset();
  console.note(fmt::format("read '{}' in {:.1f} ms", escape(path), watch.seconds() * 1e3));
  return model;
}

void add_plan_option(Options& options, std::string& plan) {
  options.choice(plan, "--ensemble-plan", arrangement_names(),
                 "How members of one structure run: measured (auto), side by side, with an axis of models, or in a loop");
}

}  // namespace tutti::cli
