#include "tutti/cli/model_argument.h"

#include "tutti/cli/console.h"
#include "tutti/device/device.h"
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

void add_device_option(Options& options, std::string& device) {
  options.option(
      device, "--device", "DEVICE",
      fmt::format(
          "Where to compute: cpu, cuda, rocm, tpu, xla:cpu, a PJRT plugin's path, with :N for one of several, or auto; see tutti devices; "
          "default {}",
          default_device));
}

void open_asked_device(Console& console, std::string& device) {
  as_usage([&] {
    const auto found = open_device(device);
    if (device != automatic_device) return;
    device = found->name();
    console.tell(fmt::format("--device auto is {}: {}", device, found->description()));
  });
}

void add_target_option(Options& options, std::string& target) {
  options.option(target, "--target", "NAME",
                 "Compile for a device that is not here, by its published limits: a100, h100, b200, l4 (with --device cuda), or a file "
                 "like tutti/device/xla/targets/*.toml");
}

void add_target(std::string& device, const std::string& target) {
  if (target.empty()) return;
  if (device == default_device)
    throw UsageError("usage", fmt::format("--target {} needs the platform to compile for: --device cuda", target));
  device += "@" + target;
}

void add_precision_option(Options& options, std::string& precision) {
  options.choice(precision, "--precision", precision_names(),
                 "What products of float32 may be rounded to, on accelerators; default float32");
}

void add_extent_option(Options& options, int64_t& extent) {
  options.option(extent, "--extent", "Stands for extents that the model leaves open; default: one that fits, as in inspect", 1, 1 << 24);
}

std::string bind_extents(const keras::AnyModel& model, const std::string& file, int64_t extent, CompileOptions& options) {
  const bool open = has_open_extents(model.inputs());
  if (!open && extent > 0)
    throw UsageError("usage", fmt::format("--extent is for models that leave extents open; '{}' leaves none but the batch", file));
  if (!open) return "";
  if (extent == 0) extent = model.probe_extent();
  options.input_shapes = shapes_with(model, options.batch, extent);
  return fmt::format(" ({} for open extents, --extent)", extent);
}

void add_plan_option(Options& options, std::string& plan) {
  options.choice(plan, "--ensemble-plan", arrangement_names(),
                 "How members of one structure run: measured (auto), side by side, with an axis of models, or in a loop");
}

void add_fit_plan_option(Options& options, std::string& plan) {
  options.choice(plan, "--fit-plan", fit_arrangement_names(),
                 "How jobs of one structure are trained: measured (auto), each by itself, or stacked in one program");
}

}  // namespace tutti::cli
