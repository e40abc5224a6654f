// tutti fit
#include "tutti/run/fit.h"

#include <fmt/format.h>

#include "tutti/cli/fit_table.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/signals.h"
#include "tutti/cli/verbs.h"

namespace tutti::cli {

namespace {

struct FitSettings {
  std::string jobs, out, device = std::string(default_device), plan = std::string(name(FitArrangement::measured));
  int64_t threads = 0, checkpoint_every = 0, steps_per_launch = 0, data_memory = 0, checkpoint_minutes = 0;
  bool log_steps = false, resume = false, recompute = false, deterministic = false;
  std::string devices;
  int64_t deadline = 60, bucket = 0;
  std::string exchange = "memory";
  ParallelOptions parallel;
};

Json parallel_json(const std::vector<ParallelPlan>& plans, const std::vector<ParallelTimes>& times) {
  Json out = Json::list();
  for (size_t i = 0; i < plans.size(); ++i) {
    Json one = plans[i].json();
    if (i < times.size()) {
      one.set("job", times[i].job);
      one.set("measured_steps", times[i].steps);
      one.set("undisturbed_us_per_step", times[i].undisturbed_step * 1e6);
      Json replicas = Json::list();
      for (const auto& seconds : times[i].seconds_by_phase) {
        Json phases = Json::object();
        for (size_t phase = 0; phase < seconds.size(); ++phase) phases.set(std::string(name(static_cast<Phase>(phase))), seconds[phase]);
        replicas.push(std::move(phases));
      }
      one.set("seconds_by_replica", std::move(replicas));
      if (times[i].exchange.size() > 0) one.set("exchange", times[i].exchange);
    }
    out.push(std::move(one));
  }
  return out;
}

std::string exchange_text(const Json& exchange) {
  if (exchange.has("shared_bytes"))
    return fmt::format("ranks share {} of memory: each updates a part of the weights, and reads the others' gradients where they lie",
                       human_bytes(exchange.at("shared_bytes").as_int()));
  const Json &latency = exchange.has("latency_us") ? exchange.at("latency_us") : Json(), &hidden = exchange.at("hidden");
  std::string out = fmt::format("gradients of {} are exchanged in {} bucket{} of {} and more", human_bytes(exchange.at("bytes").as_int()),
                                exchange.at("buckets").as_int(), exchange.at("buckets").as_int() == 1 ? "" : "s",
                                human_bytes(exchange.at("bucket_bytes").as_int()));
  if (!latency.is_null())
    out += fmt::format(" (measured: {:.0f} us to start one, {}/s)", latency.as_number(),
                       human_bytes(static_cast<int64_t>(exchange.at("bytes_per_second").as_number())));
  if (!hidden.is_null()) out += fmt::format(", {:.0f} % of it hidden behind the backward pass", hidden.as_number() * 100);
  return out;
}

void train(Console& console, FitSettings& settings) {
  // Before the device is opened: a plugin of several hosts asks for the others.
  const auto ranks = join_ranks(static_cast<double>(settings.deadline));
  open_asked_device(console, settings.device);
  const std::vector<FitJob> jobs = read_jobs(settings.jobs);
  FitOptions options;
  options.device = settings.device;
  options.threads = static_cast<int>(settings.threads);
  options.log_steps = settings.log_steps;
  options.folder = settings.out;
  options.checkpoint_every = settings.checkpoint_every;
  options.resume = settings.resume;
  options.recompute = settings.recompute;
  options.plan = fit_arrangement_of(settings.plan);
  options.steps_per_launch = settings.steps_per_launch;
  options.data_memory = settings.data_memory << 20;
  options.checkpoint_minutes = static_cast<double>(settings.checkpoint_minutes);
  FitTable table(console);
  if (table.is_shown()) options.progress = [&](const FitProgress& progress) { table.update(progress); };
  options.parallel = settings.parallel;
  options.parallel.deadline = static_cast<double>(settings.deadline);
  options.parallel.bucket = settings.bucket << 10;
  options.parallel.exchange = exchange_named(settings.exchange);
  options.parallel.devices = parse_devices(settings.devices, settings.device);
  if (!options.parallel.devices.empty()) options.device = options.parallel.devices[0];
  const std::vector<ParallelPlan> divided = parallel_plans(jobs, options);
  const bool speaks = ranks == nullptr || ranks->rank() == 0;
  if (!speaks) console.quiet = true;
  for (size_t i = 0; i < divided.size() && !console.json && !console.quiet; ++i)
    console.print(fmt::format("{}: {}\n", escape(jobs[i].name), divided[i].text()));
  size_t failed = 0;
  std::string last;
  // A line each; on a terminal, where a table shows them, failures only when there are many.
  constexpr size_t many = 20;
  const auto report = [&](const FitResult& result) {
    table.clear();
    if (!result.error.empty()) {
      ++failed;
      last = fmt::format("job '{}': {}", escape(result.name), result.error);
      if (jobs.size() > 1) console.warning(last);
    } else if (!console.json && !console.quiet && (jobs.size() <= many || !table.is_shown())) {
      console.print(fmt::format("{}: {} steps in {:.3f} s, loss {:.6g} ({})\n", escape(result.name), result.steps, result.seconds,
                                result.loss, result.stopped_because));
    }
  };
  if (speaks)
    options.warn = [&](const std::string& text) {
      table.clear();
      console.warning(text);
    };
  const GentleStop stop;
  const FitReport done = fit(jobs, options, report, stop.asked());
  table.clear();
  if (console.json && speaks) {
    Json list = Json::list();
    const auto is_known = [](const FitResult& result) { return result.steps > 0 || !result.history.empty(); };
    for (const FitResult& result : done.jobs) {
      Json one = JsonMembers{{"name", result.name},
                             {"steps", result.steps},
                             {"seconds", result.seconds},
                             {"us_per_step", result.steps > 0 ? Json(result.seconds * 1e6 / static_cast<double>(result.steps)) : Json()},
                             {"loss", result.error.empty() && is_known(result) ? Json(result.loss) : Json()},
                             {"stopped_because", result.stopped_because}};
      if (!result.error.empty()) one.set("error", result.error);
      list.push(std::move(one));
    }
    Json plans = Json::list();
    for (const FitPlan& plan : done.plans) plans.push(plan.json());
    Json all = JsonMembers{{"jobs", list}, {"seconds", done.seconds}, {"start_seconds", done.start_seconds}, {"plan", plans}};
    if (!divided.empty()) all.set("parallel", parallel_json(divided, done.parallel));
    console.print(all.dump(2) + "\n");
  }
  for (const ParallelTimes& times : done.parallel)
    if (console.verbose && speaks && times.exchange.size() > 0)
      console.note(fmt::format("{}: {}", escape(times.job), exchange_text(times.exchange)));
  if (stop.asked() && failed > 0 && ranks != nullptr) throw InvalidArgument("fit", last);  // a launcher stops all when it has lost one
  if (stop.asked())
    throw Interrupted(stop.exit_code(),
                      options.has_checkpoints() ? "checkpoints are written; hint: --resume goes on" : "without checkpoints");
  if (failed > 0 && jobs.size() == 1) throw InvalidArgument("fit", last);
  // Without warnings nothing else says why.
  if (failed > 0) fail<InvalidArgument>("fit", "{} of {} jobs failed{}", failed, jobs.size(), console.quiet ? "; " + last : "");
}

}  // namespace

Action fit(Options& options) {
  auto settings = std::make_shared<FitSettings>();
  options.argument(settings->jobs, "JOBS", "The job file: TOML with [defaults] and a [[job]] each");
  options.option(settings->out, "--out", "DIR", "Where results go: DIR/NAME/model.keras and history.csv a job");
  add_device_option(options, settings->device);
  options.option(settings->threads, "--threads", "At most so many; 0: as many as the work is worth", 0, 4096);
  options.flag(settings->log_steps, "--log-steps", "Also DIR/NAME/steps.csv: the loss of each step");
  options.option(settings->checkpoint_every, "--checkpoint-every", "Steps of a job between checkpoints; 0: none", 0, int64_t{1} << 40);
  options.option(settings->checkpoint_minutes, "--checkpoint-minutes", "Minutes between checkpoints; 0: none", 0, 1 << 20);
  add_fit_plan_option(options, settings->plan);
  options.option(settings->steps_per_launch, "--steps-per-launch", "Steps in a loop on the device; default 1 on cpu, 16 elsewhere", 1,
                 1024);
  options.option(settings->data_memory, "--data-memory",
                 "Megabytes of data that are held; files beyond are read as they are needed; default a quarter of the memory", 1, 1 << 30);
  options.flag(settings->recompute, "--recompute",
               "Less memory for more work: compute again what the backward pass needs; by itself where a step does not fit in memory");
  options.option(settings->devices, "--devices", "N|A,B", "Train every job with so many devices at once, or with these");
  options.option(settings->parallel.global_batch, "--global-batch", "Samples of a step, on all devices; default: the job's batch_size", 1,
                 int64_t{1} << 30);
  options.option(settings->parallel.per_device_batch, "--per-device-batch", "Samples of a step on one device", 1, int64_t{1} << 30);
  options.option(settings->parallel.accumulate, "--accumulate", "Small batches a step, one after another on each device", 1, 65536);
  options.option(settings->parallel.lr_scale, "--lr-scale", "none|linear|sqrt", "How the learning rate grows with the batch");
  options.option(settings->parallel.warmup_steps, "--warmup-steps", "Until the grown rate is reached; default: a tenth of all", 0,
                 int64_t{1} << 40);
  options.option(settings->exchange, "--exchange", "memory|messages",
                 "How ranks of one machine exchange gradients; ranks of several have messages; default memory");
  options.option(settings->bucket, "--bucket", "Kilobytes of gradients that ranks exchange at once; default: by measurement", 1, 1 << 30);
  options.flag(settings->parallel.synchronizes, "--sync-batch-norm", "Batch normalization by the whole batch, not by each device's part");
  options.option(settings->parallel.trace, "--trace", "FILE.json", "Write where the time of each step went, for Perfetto");
  options.option(settings->deadline, "--deadline", "Seconds after which a rank that does not answer ends the job; default 60", 1, 86'400);
  options.flag(settings->deterministic, "--deterministic", "The same bits in every run on as many devices; always so on the cpu device");
  options.flag(settings->resume, "--resume", "Go on from checkpoints, and leave alone what is finished");
  options.footer("Example: tutti fit jobs.toml --out results");
  return [settings](Console& console) {
    if (settings->out.empty()) throw UsageError("usage", "--out DIR is needed: where to write the results; hint: tutti fit --help");
    train(console, *settings);
  };
}

}  // namespace tutti::cli
