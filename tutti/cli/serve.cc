#include <fmt/format.h>

#include <optional>
#include <set>
#include <thread>

#include "tutti/cli/console.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/serve_network.h"
#include "tutti/cli/signals.h"
#include "tutti/cli/verbs.h"
#include "tutti/serve/local/server.h"

namespace tutti::cli {

namespace {

struct ServeSettings {
  std::vector<std::string> models;
  std::string socket, repository, device{default_device}, plan = "auto", precision = "float32";
  int64_t batch = 64, max_wait = 0, queue = 1024, drain_timeout = 10, threads = 0, versions = 1, poll = 1000, spin = 50;
  int64_t connections = 256, region_limit = 1024, region_total = 4096;
  bool warm = false;
  NetworkSettings network;
};

serve::ModelsOptions models_options(const ServeSettings& settings) {
  serve::ModelsOptions options;
  options.compile.batch = settings.batch;
  options.compile.device = settings.device;
  options.compile.threads = static_cast<int>(settings.threads);
  options.compile.precision = precision_of(settings.precision);
  options.compile.arrangement = arrangement_of(settings.plan);
  options.warm = settings.warm;
  options.repository = settings.repository;
  options.versions = settings.versions;
  options.poll = std::chrono::milliseconds(settings.poll);
  return options;
}

// Says what becomes of the models, each once a change.
class ModelNews {
 public:
  ModelNews(Console& console, const serve::Models& models) : console_(console), models_(models) {}
  void tell() {
    for (const auto& info : models_.index()) {
      Told now{info.state, info.reason, info.loaded.get()};
      Told& before = told_[{info.name, info.version}];
      if (now == before) continue;
      before = now;
      const std::string which = fmt::format("model '{}' version {}", info.name, info.version);
      if (!info.reason.empty())
        console_.warning(fmt::format("{} {}: {}", which, info.loaded ? "goes on with what it had" : "is not served", info.reason));
      else if (info.state == serve::ModelState::ready)
        console_.tell(
            fmt::format("{} is ready{}", which, info.loaded->is_batched() ? "" : ", each request alone: it mixes the samples of a batch"));
    }
  }

 private:
  struct Told {
    serve::ModelState state = serve::ModelState::loading;
    std::string reason;
    const void* loaded = nullptr;
    bool operator==(const Told&) const = default;
  };
  Console& console_;
  const serve::Models& models_;
  std::map<std::pair<std::string, int64_t>, Told> told_;
};

// Nobody is answered before the models of the command line are there: one that cannot be loaded is an error of whoever asked for it.
void load_first(const std::set<std::string>& names, const serve::Models& models, const GentleStop& stop) {
  for (bool loading = true; loading && !stop.asked();) {
    loading = false;
    for (const auto& info : models.index()) {
      if (!names.contains(info.name)) continue;
      if (info.state == serve::ModelState::failed)
        fail<InvalidModel>("serve", "model '{}' could not be loaded: {}", info.name, info.reason);
      loading |= info.state == serve::ModelState::loading;
    }
    if (loading) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void run_serve(Console& console, ServeSettings& settings) {
  if (settings.models.empty() && settings.repository.empty())
    throw UsageError("usage", "MODEL or --repository is needed: what to serve; hint: tutti serve --help");
  if (settings.socket.empty() && !settings.network.asked())
    throw UsageError("usage", "--socket PATH, --http :PORT or --grpc :PORT is needed: where to listen; hint: tutti serve --help");
  open_asked_device(console, settings.device);
  GentleStop stop;
  serve::Models models(models_options(settings));
  std::set<std::string> names;
  for (const std::string& argument : settings.models) {
    const auto [name, file] = serve::name_and_file(argument);
    models.add(name, file);
    names.insert(name);
  }
  load_first(names, models, stop);
  serve::SchedulerOptions scheduling;
  scheduling.queue = settings.queue;
  scheduling.max_wait = std::chrono::microseconds(settings.max_wait);
  scheduling.spin = std::chrono::microseconds(settings.spin);
  serve::Scheduler scheduler(scheduling);
  std::optional<serve::local::Server> local;
  if (!settings.socket.empty()) {
    serve::local::ServerOptions options;
    options.path = settings.socket;
    options.connections = static_cast<size_t>(settings.connections);
    options.region_bytes = static_cast<uint64_t>(settings.region_limit) << 20;
    options.total_bytes = static_cast<uint64_t>(settings.region_total) << 20;
    local.emplace(models, scheduler, options);
    console.tell(fmt::format("local clients: {}", escape(settings.socket)));
  }
  NetworkServers network(console, models, scheduler, settings.network);
  ModelNews news(console, models);
  bool told_ready = false;
  while (!stop.asked()) {
    news.tell();
    if (!told_ready && models.ready()) {
      told_ready = true;
      console.tell("ready");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  news.tell();
  console.tell(fmt::format("ending: {} requests are finished first", scheduler.load().queued + scheduler.load().computing));
  if (local) local->stop_listening();
  const bool drained = scheduler.drain(std::chrono::seconds(settings.drain_timeout));
  const int64_t left = scheduler.load().queued;
  network.stop(std::chrono::seconds(1));
  scheduler.stop();
  local.reset();
  throw Interrupted(stop.exit_code(),
                    drained ? "all requests were answered"
                            : fmt::format("{} requests were not computed within --drain-timeout {}", left, settings.drain_timeout));
}

}  // namespace

Action serve(Options& options) {
  auto settings = std::make_shared<ServeSettings>();
  options.optional_arguments(settings->models, "MODEL",
                             "What to serve, under its file's stem, or NAME=FILE: .keras, .h5 or .hdf5 files, ensembles' .toml");
  add_network_options(options, settings->network);
  options.option(settings->socket, "--socket", "PATH", "Local clients connect here and share memory; only this user may");
  options.option(settings->repository, "--repository", "DIR", "Also DIR/NAME/N/model.keras (.h5, .toml), version N; changes are picked up");
  options.option(settings->versions, "--versions", "Of a model of the repository serve so many, the newest; default 1", 1, 1000);
  options.option(settings->poll, "--poll", "Milliseconds between looks at the files; 0: never again; default 1000", 0, 86'400'000);
  options.option(settings->batch, "--batch", "Samples computed together, at most; default 64", 1, 1 << 20);
  options.option(settings->max_wait, "--max-wait", "Microseconds that a batch waits for more when the device is free; default 0", 0,
                 10'000'000);
  options.option(settings->queue, "--queue", "Requests that wait, at most; default 1024", 1, 1 << 20);
  options.flag(settings->warm, "--warm", "Compile all batch sizes before a model is ready");
  options.option(settings->drain_timeout, "--drain-timeout", "Seconds for requests under way when the server is told to end; default 10", 0,
                 86'400);
  options.option(settings->connections, "--connections", "Local clients, at most; default 256", 1, 100'000);
  options.option(settings->region_limit, "--region-limit", "MiB that a local client may share, at most; default 1024", 1, 1 << 20);
  options.option(settings->region_total, "--region-total", "MiB of all of them; default 4096", 1, 1 << 24);
  options.option(settings->spin, "--spin", "Microseconds to look for requests before sleeping; default 50", 0, 10'000);
  add_device_option(options, settings->device);
  add_precision_option(options, settings->precision);
  options.option(settings->threads, "--threads", "Threads of the device; default TUTTI_THREADS, or the cores", 1, 1024);
  add_plan_option(options, settings->plan);
  options.footer(
      "Ctrl-C or SIGTERM: takes no more requests, finishes those under way, and ends with 130 or 143.\n"
      "Example: tutti serve model.keras --socket /tmp/tutti.sock");
  return [settings](Console& console) { run_serve(console, *settings); };
}

}  // namespace tutti::cli
