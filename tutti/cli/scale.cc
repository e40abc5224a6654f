// tutti scale
#include <fmt/format.h>

#include <charconv>

#include "tutti/base/file.h"
#include "tutti/cli/console.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/signals.h"
#include "tutti/cli/verbs.h"
#include "tutti/run/scaling.h"

namespace tutti::cli {

namespace {

struct ScaleSettings {
  std::string jobs, devices = "1,2", device = std::string(default_device), output, only = "both";
  int64_t threads = 1, rounds = 3, global_batch = 0, milliseconds = 400;
};

std::vector<int64_t> ladder(const std::string& text) {
  std::vector<int64_t> out;
  for (const std::string& part : parts_of(text, "--devices")) {
    int64_t count = 0;
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (problem != std::errc() || end != part.data() + part.size() || count < 1 || count > 256)
      throw UsageError("usage",
                       fmt::format("--devices is a list of numbers from 1 to 256; got '{}'; hint: --devices 1,2,4", escape(part, 40)));
    if (std::find(out.begin(), out.end(), count) == out.end()) out.push_back(count);
  }
  return out;
}

std::string share_text(double share) { return fmt::format("{:.1f}", share * 100); }

void print_report(Console& console, const ScalingReport& report) {
  std::vector<std::vector<std::string>> rows{{"scaling", "devices", "batch", "ms/step", "samples/s", "speed-up", "lost ms"}};
  for (size_t i = 0; i < static_cast<size_t>(Loss::count); ++i) rows[0].push_back(std::string(name(static_cast<Loss>(i))) + " %");
  for (const ScalingResult& result : report.results) {
    rows.push_back({result.weak ? "weak" : "strong", std::to_string(result.many.devices), std::to_string(result.many.batch),
                    fmt::format("{:.3f}", result.many.step * 1e3),
                    fmt::format("{:.0f}", static_cast<double>(result.many.batch) / result.many.step),
                    fmt::format("{:.2f}", result.speed_up), fmt::format("{:.3f}", result.lost * 1e3)});
    for (double share : result.shares) rows.back().push_back(result.lost > 0 ? share_text(share) : "-");
  }
  console.print(fmt::format("{}: {}, {} thread{} a device, {} cores\n", escape(report.job), report.device, report.threads,
                            report.threads == 1 ? "" : "s", report.cores));
  std::vector<bool> right(rows[0].size(), true);
  right[0] = false;
  console.print(format_table(rows, right));
  for (const ScalingResult& result : report.results) {
    if (result.many.devices == 1) continue;
    std::string line = fmt::format("{} devices, batch {}: {}; slowest: replica {}", result.many.devices, result.many.batch, result.advice,
                                   result.many.slowest_rank);
    if (result.many.exchanged_bytes > 0)
      line += fmt::format("; gradients {}/s, {}/s would hide them", human_bytes(static_cast<int64_t>(result.bandwidth)),
                          human_bytes(static_cast<int64_t>(result.needed_bandwidth)));
    for (size_t i = 0; i < result.what_if.size(); ++i)
      line += fmt::format("{} {} {:.2f}x", i == 0 ? "; projected:" : ",", result.what_if[i].what, result.what_if[i].gain);
    console.print(line + "\n");
  }
  for (const auto& one : report.projected) console.print(fmt::format("{} devices: {:.2f}x, projected\n", one.devices, one.speed_up));
}

void measure(Console& console, ScaleSettings& settings) {
  if (is_ranked()) throw UsageError("usage", "scale compares devices of one process; hint: without mpirun");
  if (!settings.output.empty() && suffix_of(settings.output) != ".html" && suffix_of(settings.output) != ".json")
    throw UsageError("usage", fmt::format("'{}': the report is written as .html or .json", settings.output));
  open_asked_device(console, settings.device);
  ScalingOptions options;
  options.devices = ladder(settings.devices);
  options.rounds = settings.rounds;
  options.seconds = static_cast<double>(settings.milliseconds) * 1e-3;
  options.weak = settings.only != "strong";
  FitOptions fit;
  fit.device = settings.device;
  fit.threads = static_cast<int>(settings.threads);
  fit.parallel.global_batch = settings.global_batch;
  const GentleStop stop;
  std::vector<ScalingReport> reports;
  Json all = Json::list();
  for (const FitJob& job : read_jobs(settings.jobs)) {
    reports.push_back(measure_scaling(
        job, fit, options, [&](const std::string& text) { console.note(text); }, stop.asked()));
    all.push(reports.back().json());
    if (!console.json) print_report(console, reports.back());
  }
  if (console.json) console.print(Json(JsonMembers{{"jobs", all}}).dump(2) + "\n");
  if (settings.output.empty()) return;
  OutputFile file(settings.output);
  file.write(settings.output.ends_with(".json") ? Json(JsonMembers{{"jobs", all}}).dump(2) + "\n" : scaling_page(reports));
  file.commit();
}

}  // namespace

Action scale(Options& options) {
  auto settings = std::make_shared<ScaleSettings>();
  options.argument(settings->jobs, "JOBS", "The job file, as for tutti fit");
  options.option(settings->devices, "--devices", "N,N", "How many devices to compare with one; default 1,2");
  options.option(settings->output, "-o,--output", "OUT.html|OUT.json", "The report as a page with a chart, or all numbers");
  options.option(settings->global_batch, "--global-batch", "Samples of a step; default: the job's batch_size", 1, int64_t{1} << 30);
  options.option(settings->threads, "--threads", "Threads of each device; default 1", 1, 4096);
  options.option(settings->rounds, "--rounds", "How often each arm is measured, in turns; the fastest counts", 1, 1000);
  options.option(settings->milliseconds, "--turn", "Milliseconds of each measurement, about", 1, 3'600'000);
  options.choice(settings->only, "--only", {"both", "strong"}, "strong: the same batch in every arm; both: also one that grows");
  add_device_option(options, settings->device);
  options.footer("Example: tutti scale jobs.toml --devices 1,2 -o scaling.html");
  return [settings](Console& console) { measure(console, *settings); };
}

}  // namespace tutti::cli
