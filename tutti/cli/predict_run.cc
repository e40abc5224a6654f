#include "tutti/cli/predict_run.h"

#include <algorithm>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/cli/item_results.h"
#include "tutti/cli/nan_members.h"
#include "tutti/cli/results.h"
#include "tutti/cli/signals.h"
#include "tutti/cli/stage_summary.h"
#include "tutti/cli/verb.h"
#include "tutti/run/best_batch.h"
#include "tutti/run/row_run.h"

namespace tutti::cli {

namespace {

// A source that is looked at from outside.
class WatchedItems : public ItemSource {
 public:
  explicit WatchedItems(ItemSource& all) : all_(all) {}
  Next next(Item& item, std::chrono::milliseconds wait) override {
    broke = true;  // unless it returns
    const Next found = all_.next(item, wait);
    broke = false;
    if (found == Next::end) ended = true;
    return found;
  }
  std::atomic<bool> ended = false, broke = false;

 private:
  ItemSource& all_;
};

// Of an ensemble its members too: the manifest only says which they are.
void describe_model(Json& settings, const std::string& what, const std::string& path) {
  describe_file(settings, what, path);
  if (!is_manifest(path)) return;
  for (const std::string& member : read_manifest(path).members) describe_model(settings, fmt::format("member '{}'", member), member);
}

class PredictRun {
 public:
  PredictRun(Console& console, const PredictSettings& settings, const std::shared_ptr<const keras::AnyModel>& model, PredictInput& input)
      : console_(console), settings_(settings), model_(*model), input_(input), nan_members_(*model), predictor_(model, largest()) {}

  void run() {
    choose_batch();
    open_results();
    progress_.emplace(console_, "predict", input_.samples());
    if (fetches_ && journal_)
      run_rows();
    else
      run_items();
  }

 private:
  void run_items() {
    auto items = input_.items(piece_, journal_.get());
    WatchedItems left(*items);
    const PipelineOptions options{.batch = piece_,
                                  .workers = workers(),
                                  .queue = settings_.items.queue > 0 ? settings_.items.queue : (input_.named ? 2 : 4) * piece_,
                                  .max_wait = std::chrono::milliseconds(settings_.items.max_wait),
                                  .ahead = open_device(settings_.device)->is_asynchronous()};
    PipelineStages stages{
        .source = &left,
        .prepare = [&](const Item& item, Slots slots) { input_.prepare(item, slots); },
        .compute = [&](const std::vector<Tensor>& samples) { return begin(samples); },
        .write = [&](const FinishedBatch& batch) { take(batch); },
    };
    Pipeline pipeline(input_.rows(), options, stages);
    pipeline_ = &pipeline;
    const Stopwatch watch;
    run_until_end_or_signal(
        [&](const std::atomic<bool>& stop) {
          pipeline.run(stop);
          return left.ended.load();
        },
        [&] { return left.broke && !input_.named; });
    finish(pipeline.counters(), watch.seconds());
  }

  // A table, by the device's own threads.
  void run_rows() {
    std::optional<RowRun> rows;
    rows.emplace(predictor_, input_.rows(), batch_, (piece_ + batch_ - 1) / batch_,
                 RowStages{.fetch = [&](int64_t first, int64_t count,
                                        Slots slots) { input_.prepare({.name = "", .first = first, .samples = count}, slots); },
                           .write =
                               [&](int64_t count, auto outputs) {
                                 journal_->append(count, outputs);
                                 done_ += count;
                                 progress_->update(done(), bottleneck(rows->counters()));
                               }});
    const int64_t left = *input_.samples() - journal_->resumed();
    journal_->expect(*input_.samples());
    const Stopwatch watch;
    run_until_end_or_signal([&](const std::atomic<bool>& stop) { return rows->run(journal_->resumed(), left, stop) == left; },
                            [] { return false; });
    finish(rows->counters(), watch.seconds());
  }

  // run(stop) gives whether it came to the end; useless() whether what it left when it failed is of no use.
  template <class Run, class Useless>
  void run_until_end_or_signal(const Run& run, const Useless& useless) {
    const GentleStop stop;
    bool ended = false;
    try {
      ended = run(stop.asked());
    } catch (...) {
      progress_.reset();
      if (journal_ && (journal_->items() == 0 || useless())) journal_->remove();
      throw;
    }
    progress_.reset();
    if (ended) return;
    if (results_ && settings_.output.empty()) {
      results_->commit();
      if (console_.json) console_.print("}\n");  // of what the results began
    }
    throw Interrupted(stop.exit_code(), fmt::format("after {} {}{}", done(), input_.noun, journal_ ? "; hint: --resume goes on" : ""));
  }

  CompileOptions largest() const { return compile_options(settings_, settings_.batch > 0 ? settings_.batch : int64_t{1} << 20); }

  // Rows of a table are only copied, for which one is enough.
  int64_t workers() const {
    if (settings_.items.workers > 0) return settings_.items.workers;
    return input_.named ? std::max<int64_t>(std::thread::hardware_concurrency(), 1) : 1;
  }

  // The batch, and what the outputs look like: known before anything is computed.
  void choose_batch() {
    const std::vector<Type>& rows = input_.rows();
    batch_ = settings_.batch > 0 ? settings_.batch : best_batch(predictor_, rows, input_.samples());
    if (auto count = input_.samples()) batch_ = std::clamp<int64_t>(*count, 1, batch_);
    const bool in_pieces = !input_.named && predictor_.samples_are_independent(rows);
    const int64_t some = std::min(in_pieces ? 2 * batch_ : batch_, std::max<int64_t>(input_.samples().value_or(INT64_MAX), 1));
    const PreparedPrediction prepared = predictor_.prepare(rows, some, batch_);
    std::vector<Tensor> outputs = prepared.outputs();
    NanMembers(model_).take(outputs);
    specs_ = output_specs(model_, outputs);
    row_a_sample_ = std::all_of(outputs.begin(), outputs.end(), [&](const Tensor& output) { return output.shape()[0] == some; });
    // Rows of a table are handed on in pieces that are worth it, some batches each.
    const bool alone = input_.knows_rows_by_number() && prepared.is_side_by_side() && !nan_members_.any();
    const int64_t worth = alone ? 1 << 20 : 768 << 10;
    int64_t bytes = 1;
    for (const Tensor& output : outputs) bytes += output.type().bytes() / some;
    for (const Type& row : rows) bytes += alone ? 0 : row.bytes();  // whose rows are held for a batch only
    piece_ = in_pieces ? batch_ * std::clamp<int64_t>(worth / (bytes * batch_), 1, worth) : batch_;
    if (auto count = input_.samples()) piece_ = std::clamp<int64_t>(*count, 1, piece_);
    fetches_ = alone && piece_ >= 2 * batch_;
  }

  void open_results() {
    const ItemSettings& items = settings_.items;
    if (!items.labels.empty() || items.top > 0) {
      labels_ = std::make_shared<TopLabels>(items.labels, items.top > 0 ? items.top : 5);
      labels_->check(specs_);
    }
    if (settings_.output.empty()) {
      results_ = shown_results(console_, specs_, labels_, input_.named);
      return;
    }
    auto writer = open_file();  // refuses now what it would refuse in the end
    int64_t row_bytes = 0;
    for (const ArraySpec& spec : specs_) row_bytes += spec.row.elements();
    const bool resumable = input_.named || (row_a_sample_ && row_bytes > 0);
    if (!resumable && items.resume)
      fail<Unsupported>("resume", "the model's outputs are not a row for each sample, so what is missing cannot be told");
    const auto count = input_.samples();
    if (!resumable || (!input_.named && !items.resume && count && *count <= piece_)) {
      results_ = std::move(writer);
      return;
    }
    writer.reset();
    journal_ = std::make_unique<Journal>(Journal::Run{settings_.output, resume_key(), specs_, input_.named}, items.resume);
  }

  std::unique_ptr<ItemWriter> open_file() const { return open_item_output(settings_.output, specs_, labels_, input_.named); }

  // What must be the same for a run to go on.
  Json resume_key() const {
    Json out = Json::object();
    describe_model(out, "model", settings_.model);
    out.set("device", settings_.device);
    out.set("precision", settings_.precision);
    input_.describe(out);
    return out;
  }

  // On a device that computes by itself, the samples are under way when it returns.
  PipelineResults begin(const std::vector<Tensor>& samples) {
    auto prepared = std::make_shared<PreparedPrediction>(predictor_.prepare(samples, batch_));
    prepared->begin();
    return [this, prepared, count = samples[0].shape()[0]] {
      prepared->end();
      return checked(prepared->outputs(), count);
    };
  }

  std::vector<Tensor> checked(std::vector<Tensor> outputs, int64_t samples) {
    nan_members_.take(outputs);
    const std::vector<ArraySpec> found = output_specs(model_, outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      // A model may mix samples so that a smaller last batch has another shape.
      if (!(found[i].row == specs_[i].row))
        fail<Unsupported>("predict", "rows of output '{}' are {} in one batch and {} in another; hint: a --batch that divides the samples",
                          specs_[i].name, to_string(specs_[i].row), to_string(found[i].row));
      if ((journal_ || input_.named) && outputs[i].shape()[0] != samples)
        fail<Unsupported>("predict", "output '{}' is {} for {} {}, not a row each", specs_[i].name, to_string(outputs[i].type()), samples,
                          input_.noun);
    }
    return outputs;
  }

  // On the writer's thread, in the order of the items.
  void take(const FinishedBatch& batch) {
    for (size_t i = 0; i < batch.errors.size(); ++i) {
      if (batch.errors[i].empty()) continue;
      if (!input_.named) throw InvalidArgument("predict", batch.errors[i]);
      if (input_.only_one) fail<InvalidArgument>("predict", "'{}': {}", escape(batch.names[i]), batch.errors[i]);
      if (settings_.items.on_error == "stop") stop_at(batch, i);
      progress_->clear();
      console_.warning(fmt::format("'{}': {}", escape(batch.names[i]), escape(batch.errors[i], 400)));
      ++failed_;
    }
    static const std::vector<std::string> none;
    if (input_.named)
      keep({batch.names, batch.errors, with_marks(batch.outputs, batch.errors)}, batch.samples);
    else
      keep({none, none, batch.outputs}, batch.samples);
    progress_->update(done(),
                      fmt::format("{}{}", failed_ > 0 ? fmt::format("{} failed, ", failed_) : "", bottleneck(pipeline_->counters())));
  }

  void keep(const ItemRows& rows, int64_t samples) {
    if (journal_)
      journal_->append(rows);
    else
      results_->write(rows);
    done_ += samples;
  }

  [[noreturn]] void stop_at(const FinishedBatch& batch, size_t bad) {
    const std::vector<std::string> names(batch.names.begin(), batch.names.begin() + static_cast<std::ptrdiff_t>(bad));
    std::vector<Tensor> outputs;
    for (size_t k = 0; k < specs_.size(); ++k) {
      outputs.emplace_back(specs_[k].dtype, with_rows(static_cast<int64_t>(bad), specs_[k].row));
      std::copy_n(batch.outputs[k].bytes().begin(), outputs[k].bytes().size(), outputs[k].bytes().begin());
    }
    if (journal_) keep({names, std::vector<std::string>(bad), outputs}, static_cast<int64_t>(bad));
    fail<InvalidArgument>("predict", "'{}': {}; stopped after {} {}{}", escape(batch.names[bad]), batch.errors[bad], done(), input_.noun,
                          done() > 0 && journal_ ? "; hint: --resume goes on" : "");
  }

  int64_t done() const { return done_ + (journal_ ? journal_->resumed() : 0); }

  void finish(const std::vector<StageCounters>& stages, double piped) {
    if (journal_) {
      failed_ = journal_->failed();
      journal_->finish([&] { return open_file(); });
    } else {
      results_->commit();
    }
    nan_members_.report(console_);
    const double seconds = clock_.seconds();
    const bool took_long = piped >= 1;
    const auto say = [&](const std::string& text) { took_long ? console_.summary(text) : console_.note(text); };
    say(fmt::format("{} {} in {:.3f} s, {} a second, in batches of {}, on {}", grouped(done()), input_.noun, seconds,
                    human_count(static_cast<double>(done()) / seconds), batch_, settings_.device));
    say("where the time went\n" + stage_table(stages, piped));
    if (console_.json) console_.print(summary(stages, seconds, piped));
    if (failed_ > 0)
      fail<InvalidArgument>("predict", "{} of {} {} failed; their rows say so{}", failed_, done(), input_.noun,
                            settings_.output.empty() ? "" : fmt::format(" in '{}'", escape(settings_.output)));
  }

  // The last members of the object that the results began, or the whole object where they went to a file.
  std::string summary(const std::vector<StageCounters>& stages, double seconds, double piped) const {
    Json out = Json::object(), outputs = Json::list();
    for (const auto& spec : specs_)
      outputs.push(JsonMembers{{"name", spec.name}, {"dtype", numpy_name(spec.dtype)}, {"shape", shape_json(with_rows(done(), spec.row))}});
    out.set("model", settings_.model);
    out.set("input", settings_.items.files.empty() ? settings_.input : settings_.items.files);
    out.set("output", settings_.output.empty() ? Json() : Json(settings_.output));
    out.set("device", settings_.device);
    out.set("batch", batch_);
    out.set("samples", done());
    out.set("resumed", journal_ ? journal_->resumed() : 0);
    out.set("failed", failed_);
    out.set("outputs", outputs);
    out.set("seconds", seconds);
    out.set("stages", stage_json(stages));
    out.set("advice", stage_advice(stages, piped));
    std::string text = out.dump();
    return (settings_.output.empty() ? ", " + text.substr(1) : text) + "\n";
  }

  Console& console_;
  const PredictSettings& settings_;
  const Stopwatch clock_ = {};
  const keras::AnyModel& model_;
  PredictInput& input_;
  NanMembers nan_members_;
  BatchPredictor predictor_;
  int64_t batch_ = 0, piece_ = 0, failed_ = 0, done_ = 0;
  bool row_a_sample_ = true, fetches_ = false;
  std::vector<ArraySpec> specs_;
  std::shared_ptr<TopLabels> labels_;
  std::unique_ptr<Journal> journal_;     // where a run may be interrupted, or
  std::unique_ptr<ItemWriter> results_;  // where they go at once
  const Pipeline* pipeline_ = nullptr;
  std::optional<Progress> progress_;
};

}  // namespace

void predict_all(Console& console, const PredictSettings& settings, const std::shared_ptr<const keras::AnyModel>& model,
                 PredictInput& input) {
  PredictRun(console, settings, model, input).run();
}

}  // namespace tutti::cli
