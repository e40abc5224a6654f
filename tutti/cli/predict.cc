// tutti predict
#include <algorithm>
#include <memory>

#include "tutti/base/json.h"
#include "tutti/base/pauses.h"
#include "tutti/cli/console.h"
#include "tutti/cli/latency.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/nan_members.h"
#include "tutti/cli/predict_run.h"
#include "tutti/cli/results.h"
#include "tutti/cli/verbs.h"
#include "tutti/data/format.h"
#include "tutti/data/row_writer.h"
#include "tutti/run/batch_predictor.h"

namespace tutti::cli {

namespace {

class Prediction {
 public:
  Prediction(Console& console, PredictSettings& settings) : console_(console), settings_(settings) {}

  void run() {
    if (!settings_.output.empty()) as_usage([&] { return format_of_output(settings_.output); });
    keep_inputs(settings_.output, {settings_.input, settings_.items.files});
    open_asked_device(console_, settings_.device);
    model_ = load_with_progress(console_, settings_.model);
    if (!model_->problems().empty()) model_->lower({});  // throws, and lists them; no data are asked for first
    auto input = find_images(settings_, *model_);
    if (input && settings_.latency) throw UsageError("usage", "--latency is for arrays; got images");
    if (!input) {
      if (std::string option = settings_.items.set_option(); !option.empty()) {
        format_of_input(settings_.input);  // what is no array either is refused with its own reason
        throw UsageError("usage", fmt::format("{} is for images; '{}' is an array", option, escape(settings_.input)));
      }
      if (settings_.latency) return measure();
      input = open_table(settings_, *model_);
    }
    if (std::string odd = input->warning(); !odd.empty()) console_.warning(odd);
    predict_all(console_, settings_, model_, *input);
  }

 private:
  void measure() {
    auto reader = open_table_samples(settings_, *model_);
    if (std::string odd = reader->warning(); !odd.empty()) console_.warning(odd);
    int64_t sample_bytes = 1;
    for (const Type& row : reader->rows()) sample_bytes += row.bytes();
    batch_ = settings_.batch > 0 ? settings_.batch : std::clamp<int64_t>((64 << 20) / sample_bytes, 1, 32);
    BatchPredictor predictor(model_, compile_options(settings_, batch_));
    // Many batches at once, as they are computed side by side.
    const int64_t most = predictor.samples_are_independent(reader->rows()) ? batch_ * std::max<int64_t>((1 << 20) / batch_, 1) : batch_;
    std::vector<std::vector<Tensor>> pieces;
    int64_t samples = 0;
    for (;;) {
      pieces.push_back(reader->next(most));
      const int64_t count = pieces.back()[0].shape()[0];
      samples += count;
      if (count < most) break;
    }
    if (pieces.size() > 1 && pieces.back()[0].shape()[0] == 0) pieces.pop_back();
    if (samples == 0) fail<InvalidArgument>("predict", "--latency needs at least one sample; '{}' has none", settings_.input);

    std::vector<PreparedPrediction> prepared;
    double cold_start = 0;
    for (const auto& piece : pieces) {
      prepared.push_back(predictor.prepare(piece));
      prepared.back().run();
      if (prepared.size() == 1) cold_start = seconds_since_start();
    }
    Latency latency(repeat(prepared));
    if (!settings_.output.empty()) {
      NanMembers nan_members(*model_);
      std::unique_ptr<RowWriter> writer;
      for (const PreparedPrediction& batch : prepared) {
        std::vector<Tensor> outputs = batch.outputs();
        nan_members.take(outputs);
        if (writer == nullptr) writer = open_output(settings_.output, output_specs(*model_, outputs));
        writer->write(outputs);
      }
      writer->commit();
      nan_members.report(console_);
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
    const Pauses pauses = measure_pauses(0.05);
    if (console_.json) {
      Json out = Json::object();
      latency.add_to(out);
      out.set("per_second", per_second);
      out.set("cold_start_ms", cold_start * 1e3);
      out.set("pauses_per_second", pauses.per_second);
      out.set("pause_us", pauses.mean * 1e6);
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
    console_.print(fmt::format("pauses of the machine itself: {}/s of {} us, {:.1f} % of the time\n", three_digits(pauses.per_second),
                               three_digits(pauses.mean * 1e6), pauses.share() * 100));
  }

  Console& console_;
  PredictSettings& settings_;
  std::shared_ptr<const keras::AnyModel> model_;
  int64_t batch_ = 0;
};

}  // namespace

Action predict(Options& options) {
  auto settings = std::make_shared<PredictSettings>();
  options.argument(settings->model, "MODEL", model_help);
  options.optional_argument(settings->input, "INPUT",
                            "Samples: .npy (the one input), .npz (an array per input name, or arr_0, ...), .csv; images: a JPEG or PNG "
                            "file, a folder, a .tar");
  options.option(settings->output, "-o,--output", "OUT",
                 "Where to: .npy (one output), .npz (an array per output name), .csv, .jsonl; else a table");
  options.option(settings->batch, "--batch",
                 "Samples computed together; default 32, fewer when they are large, as many as is best when the model is small", 1,
                 1 << 24);
  add_device_option(options, settings->device);
  add_precision_option(options, settings->precision);
  options.option(settings->threads, "--threads", "Threads of the device; default TUTTI_THREADS, or the cores", 1, 1024);
  add_plan_option(options, settings->plan);
  options.choice(settings->header, "--header", {"auto", "yes", "no"}, "Whether a .csv begins with names; auto: when no field is a number");
  options.flag(settings->latency, "--latency",
               "Run the whole input again and again, print p50, p90, p99, max, a histogram, predictions/s and cold start");
  options.option(settings->repeat, "--repeat", "Runs for --latency; default 100", 1, 1'000'000'000);
  add_item_options(options, settings->items);
  options.footer("Example: tutti predict model.keras x.npy -o y.npy");
  return [settings](Console& console) {
    if (settings->repeat > 0 && !settings->latency) throw UsageError("usage", "--repeat needs --latency; hint: tutti predict --help");
    if (settings->repeat == 0) settings->repeat = 100;
    if (settings->items.resume && settings->output.empty())
      throw UsageError("usage", "--resume goes on with a file, and there is none; hint: -o OUT");
    Prediction(console, *settings).run();
  };
}

}  // namespace tutti::cli
