// tutti predict
#include <algorithm>
#include <memory>

#include "tutti/base/json.h"
#include "tutti/cli/console.h"
#include "tutti/cli/latency.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/nan_members.h"
#include "tutti/cli/results.h"
#include "tutti/cli/verbs.h"
#include "tutti/data/format.h"
#include "tutti/data/samples.h"
#include "tutti/run/batch_predictor.h"

namespace tutti::cli {

namespace {

struct PredictSettings {
  std::string model, input, output, device{default_device}, header = "auto", plan = "auto";
  int64_t batch = 0, repeat = 0, threads = 0;
  bool latency = false;
};

std::vector<InputSpec> input_specs(const keras::AnyModel& model) {
  std::vector<InputSpec> out;
  for (const auto& input : model.inputs()) out.push_back({input.name, input.dtype, Ints(input.shape.begin() + 1, input.shape.end())});
  return out;
}

// As Keras, unless samples are large: then as many as fit in 64 MiB.
int64_t default_batch(const keras::AnyModel& model, const SampleReader& reader) {
  int64_t bytes = 1;
  for (size_t i = 0; i < reader.rows().size(); ++i) bytes += reader.rows()[i].elements() * byte_size(model.inputs()[i].dtype);
  return std::clamp<int64_t>((64 << 20) / bytes, 1, 32);
}

// What the batches' outputs have in common. As in Keras, rows of all batches follow each other, one for each sample or not.
std::vector<ArraySpec> output_specs(const keras::AnyModel& model, const std::vector<Tensor>& outputs) {
  std::vector<ArraySpec> out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.output_names()[i];
    if (outputs[i].shape().rank() == 0) fail<Unsupported>("predict", "output '{}' is a single number for all samples, not rows", name);
    out.push_back({name, outputs[i].dtype(), row_of(outputs[i].shape())});
  }
  return out;
}

class Prediction {
 public:
  Prediction(Console& console, const PredictSettings& settings) : console_(console), settings_(settings) {}

  void run() {
    if (!settings_.output.empty()) as_usage([&] { return format_of_output(settings_.output); });
    as_usage([&] { return open_device(settings_.device); });
    model_ = load_with_progress(console_, settings_.model);
    nan_members_.emplace(*model_);
    CsvHeader header = settings_.header == "yes" ? CsvHeader::present : settings_.header == "no" ? CsvHeader::absent : CsvHeader::detect;
    if (!model_->problems().empty()) model_->lower({});  // throws, and lists them; no data are asked for first
    reader_ = open_samples(settings_.input, input_specs(*model_), header);
    if (std::string odd = reader_->warning(); !odd.empty()) console_.warning(odd);
    batch_ = settings_.batch > 0 ? settings_.batch : default_batch(*model_, *reader_);
    predictor_ = std::make_unique<BatchPredictor>(model_, CompileOptions{.batch = batch_,
                                                                         .device = settings_.device,
                                                                         .threads = static_cast<int>(settings_.threads),
                                                                         .arrangement = arrangement_of(settings_.plan)});
    if (settings_.latency)
      measure();
    else
      stream();
  }

 private:
  void stream() {
    Progress progress(console_, "predict", reader_->samples());
    std::unique_ptr<RowWriter> writer;
    std::vector<ArraySpec> specs;
    int64_t samples = 0;
    for (;;) {
      std::vector<Tensor> inputs = reader_->next(batch_);
      int64_t count = inputs[0].shape()[0];
      if (count == 0 && writer != nullptr) break;
      std::vector<Tensor> outputs = predictor_->predict(inputs);
      nan_members_->take(outputs);
      std::vector<ArraySpec> found = output_specs(*model_, outputs);
      if (writer == nullptr) {
        specs = found;
        writer = open_writer(specs);
      }
      check_same(specs, found);
      writer->write(outputs);
      samples += count;
      progress.update(samples);
      if (count < batch_) break;
    }
    writer->commit();
    nan_members_->report(console_);
    double seconds = clock_.seconds();
    console_.note(fmt::format("{} samples in {:.3f} s, in batches of {}, on {}", samples, seconds, batch_, settings_.device));
    if (console_.json) console_.print(summary(specs, samples, seconds));
  }

  // A model may mix samples so that a smaller last batch has another shape.
  static void check_same(const std::vector<ArraySpec>& first, const std::vector<ArraySpec>& found) {
    for (size_t i = 0; i < first.size(); ++i)
      if (!(first[i].row == found[i].row))
        fail<Unsupported>("predict", "rows of output '{}' are {} in one batch and {} in another; hint: a --batch that divides the samples",
                          first[i].name, to_string(first[i].row), to_string(found[i].row));
  }

  std::unique_ptr<RowWriter> open_writer(const std::vector<ArraySpec>& specs) {
    if (!settings_.output.empty()) return open_output(settings_.output, specs);
    return console_.json ? json_results(console_, specs) : table_results(console_, specs);
  }

  // The last members of the object that json_results() began, or the whole object where the results went to a file.
  std::string summary(const std::vector<ArraySpec>& specs, int64_t samples, double seconds) const {
    Json out = Json::object(), outputs = Json::list();
    for (const auto& spec : specs)
      outputs.push(
          JsonMembers{{"name", spec.name}, {"dtype", numpy_name(spec.dtype)}, {"shape", shape_json(with_rows(samples, spec.row))}});
    out.set("model", settings_.model);
    out.set("input", settings_.input);
    out.set("output", settings_.output.empty() ? Json() : Json(settings_.output));
    out.set("device", settings_.device);
    out.set("batch", batch_);
    out.set("samples", samples);
    out.set("outputs", outputs);
    out.set("seconds", seconds);
    std::string text = out.dump();
    return (settings_.output.empty() ? ", " + text.substr(1) : text) + "\n";
  }

  void measure() {
    std::vector<std::vector<Tensor>> batches;
    int64_t samples = 0;
    for (;;) {
      batches.push_back(reader_->next(batch_));
      int64_t count = batches.back()[0].shape()[0];
      samples += count;
      if (count < batch_) break;
    }
    if (batches.size() > 1 && batches.back()[0].shape()[0] == 0) batches.pop_back();
    if (samples == 0) fail<InvalidArgument>("predict", "--latency needs at least one sample; '{}' has none", settings_.input);

    std::vector<PreparedPrediction> prepared;
    double cold_start = 0;
    for (const auto& batch : batches) {
      prepared.push_back(predictor_->prepare(batch));
      prepared.back().run();
      if (prepared.size() == 1) cold_start = seconds_since_start();
    }
    Latency latency(repeat(prepared));
    if (!settings_.output.empty()) {
      std::vector<ArraySpec> specs;
      std::unique_ptr<RowWriter> writer;
      for (const PreparedPrediction& batch : prepared) {
        std::vector<Tensor> outputs = batch.outputs();
        nan_members_->take(outputs);
        if (writer == nullptr) {
          specs = output_specs(*model_, outputs);
          writer = open_output(settings_.output, specs);
        }
        check_same(specs, output_specs(*model_, outputs));
        writer->write(outputs);
      }
      writer->commit();
      nan_members_->report(console_);
    }
    print(latency, samples, cold_start);
  }

  // Runs everything again and again as a program would that calls the library: compiled, data and results in place. Gives seconds.
  std::vector<double> repeat(std::vector<PreparedPrediction>& prepared) {
    Progress progress(console_, "latency", settings_.repeat);
    std::vector<double> seconds(static_cast<size_t>(settings_.repeat));
    for (double& one : seconds) {
      Stopwatch watch;
      for (PreparedPrediction& batch : prepared) batch.run();
      one = watch.seconds();
      progress.update(&one - seconds.data() + 1);
    }
    return seconds;
  }

  void print(const Latency& latency, int64_t samples, double cold_start) {
    const double per_second = static_cast<double>(samples * settings_.repeat) / std::max(latency.total(), 1e-9);
    if (console_.json) {
      Json out = Json::object();
      latency.add_to(out);
      out.set("per_second", per_second);
      out.set("cold_start_ms", cold_start * 1e3);
      out.set("samples", samples);
      out.set("batch", batch_);
      out.set("repeat", settings_.repeat);
      out.set("device", settings_.device);
      console_.print(out.dump(2) + "\n");
      return;
    }
    console_.print(fmt::format("{} runs of {} sample{} in batches of {} on {}\n", settings_.repeat, samples, samples == 1 ? "" : "s",
                               std::min(batch_, samples), settings_.device));
    console_.print(latency.text());
    console_.print(fmt::format("{} predictions/s, cold start {:.1f} ms\n", three_digits(per_second), cold_start * 1e3));
  }

  Console& console_;
  const PredictSettings& settings_;
  Stopwatch clock_;
  std::shared_ptr<const keras::AnyModel> model_;
  std::optional<NanMembers> nan_members_;
  std::unique_ptr<SampleReader> reader_;
  std::unique_ptr<BatchPredictor> predictor_;
  int64_t batch_ = 0;
};

}  // namespace

Action predict(Options& options) {
  auto settings = std::make_shared<PredictSettings>();
  options.argument(settings->model, "MODEL", model_help);
  options.argument(settings->input, "INPUT", "Samples: .npy (the one input), .npz (an array per input name, or arr_0, ...), .csv");
  options.option(settings->output, "-o,--output", "OUT",
                 "Where to: .npy (one output), .npz (an array per output name), .csv; else a table");
  options.option(settings->batch, "--batch", "Samples computed together; default 32, fewer when they are large", 1, 1 << 24);
  options.option(settings->device, "--device", "DEVICE", fmt::format("Where to compute, see tutti devices; default {}", default_device));
  options.option(settings->threads, "--threads", "Threads of the device; default TUTTI_THREADS, or the cores", 1, 1024);
  add_plan_option(options, settings->plan);
  options.choice(settings->header, "--header", {"auto", "yes", "no"}, "Whether a .csv begins with names; auto: when no field is a number");
  options.flag(settings->latency, "--latency",
               "Run the whole input again and again, print p50, p90, p99, max, a histogram, predictions/s and cold start");
  options.option(settings->repeat, "--repeat", "Runs for --latency; default 100", 1, 1'000'000'000);
  options.footer("Example: tutti predict model.keras x.npy -o y.npy");
  return [settings](Console& console) {
    if (settings->repeat > 0 && !settings->latency) throw UsageError("usage", "--repeat needs --latency; hint: tutti predict --help");
    if (settings->repeat == 0) settings->repeat = 100;
    Prediction(console, *settings).run();
  };
}

}  // namespace tutti::cli
