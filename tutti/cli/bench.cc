// tutti bench
#include <algorithm>
#include <cmath>

#include "tutti/base/stopwatch.h"
#include "tutti/cli/console.h"
#include "tutti/cli/latency.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/verbs.h"
#include "tutti/tutti.h"

namespace tutti::cli {

namespace {

struct BenchSettings {
  std::vector<std::string> names;
  std::string device = std::string(default_device);
  int64_t threads = 0, milliseconds = 500;
};

struct BenchRow {
  std::string name, work;
  double p50, p99, rate;  // seconds; samples or steps of a model in one
};

// What is measured: small models with fresh weights, made here, so that nothing has to be at hand.
struct BenchModel {
  const char *name, *layers;
  Ints sample;
  std::shared_ptr<const keras::Model> make(uint64_t seed = 1) const {
    return std::make_shared<const keras::Model>(keras::build(layers, sample, seed));
  }
};

const std::vector<BenchModel>& bench_models() {
  static const std::vector<BenchModel> models = {
      {"Dense 32-64-10", "dense 64 relu; dense 10 softmax", {32}},
      {"Dense 784-512-512-10", "dense 512 relu; dense 512 relu; dense 10 softmax", {784}},
      {"CNN 28x28", "conv2d 32 3 relu; max_pool 2; conv2d 64 3 relu; max_pool 2; flatten; dense 10 softmax", {28, 28, 1}},
      {"LSTM(64) 24x8", "lstm 64; dense 1", {24, 8}},
  };
  return models;
}

Tensor some_numbers(const Type& type) {
  Tensor out(type);
  uint32_t state = 1;
  for (float& value : out.as<float>()) value = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1u << 24) - 0.5f;
  return out;
}

BenchRow predict_row(std::string name, std::string work, const keras::AnyModel& model, int64_t batch, const BenchSettings& settings) {
  Predictor predictor(model, {.batch = batch, .device = settings.device, .threads = static_cast<int>(settings.threads)});
  std::vector<Tensor> inputs, outputs;
  std::vector<std::span<const std::byte>> from;
  std::vector<std::span<std::byte>> to;
  for (const Type& type : predictor.input_types()) from.emplace_back(inputs.emplace_back(some_numbers(type)).bytes());
  for (const Type& type : predictor.output_types()) to.emplace_back(outputs.emplace_back(type).bytes());
  const double wanted = static_cast<double>(settings.milliseconds) / 1000;
  for (const Stopwatch warm; warm.seconds() < wanted / 10;) predictor.run(from, to);
  constexpr size_t most = 200'000;
  std::vector<double> seconds;
  for (const Stopwatch all; seconds.empty() || (all.seconds() < wanted && seconds.size() < most);) {
    const Stopwatch one;
    predictor.run(from, to);
    seconds.push_back(one.seconds());
  }
  const Latency latency(seconds);
  const double samples = static_cast<double>(batch) * static_cast<double>(seconds.size());
  return {std::move(name), std::move(work), latency.quantile(0.5), latency.quantile(0.99), samples / latency.total()};
}

void bench_single(std::vector<BenchRow>& rows, const BenchSettings& settings) {
  for (const BenchModel& model : bench_models()) rows.push_back(predict_row("single", model.name, *model.make(), 1, settings));
}

void bench_batch(std::vector<BenchRow>& rows, const BenchSettings& settings) {
  for (const BenchModel& model : bench_models())
    rows.push_back(predict_row("batch", fmt::format("{}, 256 samples", model.name), *model.make(), 256, settings));
}

void bench_ensemble(std::vector<BenchRow>& rows, const BenchSettings& settings) {
  const BenchModel member{"", "dense 64 relu; dense 64 relu; dense 1", {32}};
  std::vector<Model> members;
  for (uint64_t i = 0; i < 32; ++i) members.emplace_back(member.make(i));
  const Model all = tutti::ensemble(members, Reduce::mean);
  rows.push_back(predict_row("ensemble", "mean of 32 x Dense 32-64-64-1", *all.shared(), 1, settings));
}

// Steps of Adam on batches of 32, of so many models at once.
void bench_fit(std::vector<BenchRow>& rows, const BenchSettings& settings) {
  constexpr int64_t samples = 1024;
  const Tensor x = some_numbers({DType::f32, {samples, 32}});
  Tensor y(DType::i32, {samples});
  for (int64_t i = 0; i < samples; ++i) y.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i % 10);
  for (size_t models : {1, 32}) {
    std::vector<FitJob> jobs(models);
    for (size_t i = 0; i < models; ++i) {
      jobs[i].name = fmt::format("{}", i);
      jobs[i].build = bench_models()[0].layers;
      jobs[i].input = bench_models()[0].sample;
      jobs[i].x = x;
      jobs[i].y = y;
      jobs[i].loss = "sparse_categorical_crossentropy";
      jobs[i].optimizer = JsonMembers{{"name", "adam"}};
      jobs[i].seed = static_cast<int64_t>(i);
      jobs[i].epochs = std::max<int64_t>(1, settings.milliseconds * 4 / static_cast<int64_t>(models) / 10);
    }
    FitOptions options;
    options.device = settings.device;
    options.threads = static_cast<int>(settings.threads);
    const FitReport report = tutti::fit(jobs, options);
    double steps = 0;
    for (const FitResult& job : report.jobs) {
      if (!job.error.empty()) fail<DeviceError>("bench", "a model did not train: {}", job.error);
      steps += static_cast<double>(job.steps);
    }
    const double each = report.seconds / steps;
    rows.push_back({"fit", fmt::format("{} x Dense 32-64-10, a step of one", models), each, each, 1 / each});
  }
}

struct Bench {
  std::string_view name;
  void (*run)(std::vector<BenchRow>& rows, const BenchSettings& settings);
};
constexpr Bench benches[] = {{"single", bench_single}, {"batch", bench_batch}, {"ensemble", bench_ensemble}, {"fit", bench_fit}};

void run_benches(Console& console, BenchSettings& settings) {
  std::string known;
  for (const Bench& bench : benches) known += fmt::format("{}{}", known.empty() ? "" : ", ", bench.name);
  for (const std::string& name : settings.names)
    if (std::none_of(std::begin(benches), std::end(benches), [&](const Bench& bench) { return bench.name == name; }))
      throw UsageError("usage", fmt::format("there is no benchmark '{}'; there are {}", escape(name), known));
  open_asked_device(console, settings.device);
  std::vector<BenchRow> rows;
  for (const Bench& bench : benches)
    if (settings.names.empty() || std::count(settings.names.begin(), settings.names.end(), bench.name) > 0) bench.run(rows, settings);
  if (console.json) {
    Json list = Json::list();
    for (const BenchRow& row : rows)
      list.push(JsonMembers{
          {"name", row.name}, {"work", row.work}, {"p50_us", row.p50 * 1e6}, {"p99_us", row.p99 * 1e6}, {"per_second", row.rate}});
    return console.print(Json(JsonMembers{{"device", settings.device}, {"rows", list}}).dump(2) + "\n");
  }
  std::vector<std::vector<std::string>> table{{"NAME", "WORK", "P50 us", "P99 us", "PER SECOND"}};
  for (const BenchRow& row : rows)
    table.push_back({row.name, row.work, three_digits(row.p50 * 1e6), three_digits(row.p99 * 1e6), grouped(std::llround(row.rate))});
  console.print(format_table(table, {false, false, true, true, true}));
}

}  // namespace

Action bench(Options& options) {
  auto settings = std::make_shared<BenchSettings>();
  options.optional_arguments(settings->names, "NAME", "single, batch, ensemble or fit; default all");
  add_device_option(options, settings->device);
  options.option(settings->threads, "--threads", "At most so many; default as many as the work is worth", 1, 1024);
  options.option(settings->milliseconds, "--milliseconds", "About so long for each row; default 500", 1, 3'600'000);
  options.footer("Against other engines, from the sources: ./x bench");
  return [settings](Console& console) { run_benches(console, *settings); };
}

}  // namespace tutti::cli
