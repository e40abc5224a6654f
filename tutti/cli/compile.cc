// tutti compile
#include "tutti/base/file.h"
#include "tutti/base/json.h"
#include "tutti/cli/console.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/verbs.h"

namespace tutti::cli {

namespace {

struct CompileVerbSettings {
  std::string model, output, device{default_device}, target, precision = "float32", plan = "auto";
  int64_t batch = 1, extent = 0;
};

void compile_model(Console& console, CompileVerbSettings& settings) {
  add_target(settings.device, settings.target);
  open_asked_device(console, settings.device);
  const auto model = load_with_progress(console, settings.model);
  CompileOptions options{.batch = settings.batch,
                         .device = settings.device,
                         .arrangement = arrangement_of(settings.plan),
                         .precision = precision_of(settings.precision)};
  const std::string note = bind_extents(*model, settings.model, settings.extent, options);
  const auto device = open_device(settings.device);
  CompileSettings own{0, {}, nullptr, options.precision};
  const auto program = device->compile(lower_for(*model, options, device), own);
  const std::string bytes = program->executable();
  OutputFile file(settings.output);
  file.write(bytes);
  file.commit();
  if (console.json)
    console.print(Json(JsonMembers{{"model", settings.model},
                                   {"output", settings.output},
                                   {"device", settings.device},
                                   {"batch", settings.batch},
                                   {"bytes", bytes.size()},
                                   {"kernels", program->stats().kernels}})
                      .dump(2) +
                  "\n");
  else
    console.print(fmt::format("{}: {} for {}, batch {}{}, {} kernel{} a run\n", escape(settings.output),
                              human_bytes(static_cast<int64_t>(bytes.size())), settings.device, settings.batch, note,
                              grouped(program->stats().kernels), program->stats().kernels == 1 ? "" : "s"));
}

}  // namespace

Action compile(Options& options) {
  auto settings = std::make_shared<CompileVerbSettings>();
  options.argument(settings->model, "MODEL", model_help);
  options.option(settings->output, "-o,--output", "OUT", "Where to: the executable, as the plugin serializes it");
  options.option(settings->batch, "--batch", "Samples computed together; default 1", 1, 1 << 24);
  add_device_option(options, settings->device);
  add_target_option(options, settings->target);
  add_precision_option(options, settings->precision);
  add_plan_option(options, settings->plan);
  add_extent_option(options, settings->extent);
  options.footer("Example: tutti compile model.keras --device cuda --target h100 -o model.bin");
  return [settings](Console& console) {
    if (settings->output.empty()) throw UsageError("usage", "-o OUT is needed; hint: tutti compile --help");
    compile_model(console, *settings);
  };
}

}  // namespace tutti::cli
