#include "tutti/run/trainer.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/keras/fit/as_keras3.h"
#include "tutti/keras/fit/build.h"
#include "tutti/keras/fit/losses.h"
#include "tutti/keras/write.h"
#include "tutti/run/ensemble_model.h"
#include "tutti/transform/recompute.h"

namespace tutti {

namespace {

constexpr const char* rate_column = "learning_rate";  // as Keras logs it for those who change it

// Entries by output: one for all, a list in order, or a table by the outputs' names.
std::vector<Json> by_output(const Json& json, const std::vector<std::string>& outputs, std::string_view what, bool list_is_one) {
  if (json.is_null()) return std::vector<Json>(outputs.size());
  const bool named = json.is_object() && !json.has("name") && !json.has("class_name");
  std::vector<Json> out;
  if (named) {
    std::vector<std::string> known = outputs;
    known.emplace_back("name");
    for (const auto& [key, value] : json.members())
      if (std::find(outputs.begin(), outputs.end(), key) == outputs.end())
        fail<InvalidArgument>("fit", "{} names an output '{}', which the model does not have{}", what, escape(key),
                              did_you_mean(key, known));
    for (const auto& output : outputs) out.push_back(json.find(output) != nullptr ? *json.find(output) : Json());
  } else if (json.is_list() && !(list_is_one && outputs.size() == 1)) {
    if (json.size() != outputs.size())
      fail<InvalidArgument>("fit", "{} has {} entries, the model {} outputs", what, json.size(), outputs.size());
    out = json.items();
  } else {
    out.assign(outputs.size(), json);
  }
  return out;
}

// Keras then scales the loss of any optimizer. A Functional model has the policy that was set when it was made, which its file does not
// say: that of its layers.
bool is_mixed_float16(const keras::Model& model) {
  const auto is_mixed = [](const Json& config) {
    const keras::Policy policy = keras::read_policy({config, "the model"});
    return policy.compute == DType::f16 && policy.variable == DType::f32;
  };
  const Json& config = model.config().at("config");
  if (config.has("dtype")) return is_mixed(config);
  const Json* layers = config.find("layers");
  size_t mixed = 0, others = 0;
  for (size_t i = 0; layers != nullptr && layers->is_list() && i < layers->size(); ++i) {
    const Json *inner = (*layers)[i].find("config"), *name = (*layers)[i].find("class_name");
    if (inner == nullptr || !inner->is_object() || !inner->has("dtype") || name == nullptr || name->dump() == "\"InputLayer\"") continue;
    ++(is_mixed(*inner) ? mixed : others);
  }
  return mixed > others;  // the guide's last layer is float32
}

// Whether variables of a file are those of a LossScaleOptimizer, which Keras's `compile` puts around the optimizer without a word in the
// file's config: behind its own counter and rate there is another counter. Those of any other begin with weights then.
bool are_of_a_scale(const std::vector<Tensor>& variables) {
  return variables.size() >= 4 && variables[2].shape().rank() == 0 && !is_float(variables[2].dtype());
}

}  // namespace

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail<InvalidArgument>("fit", "cannot make the folder '{}': {}; hint: --out DIR", escape(path, 200), error.message());
}

Trainer::Trainer(FitJob job, const TrainerOptions& options) : job_(std::move(job)), options_(options) {
  const auto seed = static_cast<uint64_t>(job_.seed);
  model_ = std::make_unique<keras::Model>(!job_.model.empty()            ? load_trainable(job_.model)
                                          : !job_.architecture.is_null() ? keras::build(job_.architecture, seed)
                                                                         : keras::build(job_.build, job_.input, seed));
  if (!model_->problems().empty()) model_->lower({});  // throws, and lists them
  if (!model_->keras_version().starts_with("3")) become_keras3();
  read_compile_options();
  FitDataStore own(std::numeric_limits<int64_t>::max());
  JobData data = (options_.data != nullptr ? *options_.data : own).load(*model_, job_, measured_outputs());
  options_.data = nullptr;
  classes_ = std::move(data.classes);
  data_ = std::move(data.training);
  validation_ = std::move(data.validation);
  if (validation_) validation_order_.resize(static_cast<size_t>(validation_->samples()));
  std::iota(validation_order_.begin(), validation_order_.end(), 0);
  if (!job_.early_stopping.is_null()) stopping_.emplace(job_.early_stopping);
  if (!job_.reduce_on_plateau.is_null()) plateau_.emplace(job_.reduce_on_plateau);
  if (plateau_ && optimizer_->is_several())
    fail<InvalidArgument>("fit", "reduce_on_plateau changes the learning rate, of which several optimizers have none in common");
  if (plateau_ && optimizer_->has_schedule())
    fail<InvalidArgument>("fit", "reduce_on_plateau changes the learning rate, which a schedule sets; hint: one of them");
  if (job_.rate_factor != 1) {
    const int64_t epoch = job_.steps_per_epoch > 0 ? job_.steps_per_epoch : (data_.samples() + job_.batch_size - 1) / job_.batch_size;
    const int64_t automatic = std::min(5 * epoch, std::max<int64_t>(1, epoch * job_.epochs / 10));
    optimizer_->scale_rate(job_.rate_factor, job_.warmup_steps < 0 ? automatic : job_.warmup_steps);
  }
  make_order();
  plan_next();
}

void Trainer::become_keras3() {
  const Json& compiled = model_->compile_config();
  const bool was_compiled = compiled.is_object() && compiled.size() > 0;
  if (was_compiled && job_.loss.is_null())
    fail<InvalidArgument>("fit", "there is no loss, and what a file of Keras 2 was compiled with is not taken along; hint: loss = \"mse\"");
  std::vector<std::string> notes;
  if (was_compiled && job_.optimizer.is_null())
    notes.emplace_back("what it was compiled with is not taken along: rmsprop trains it; hint: give the job an optimizer");
  if (keras::has_activation(*model_, "hard_sigmoid"))
    notes.emplace_back("hard_sigmoid is x / 6 + 0.5 in Keras 3, was x / 5 + 0.5, so it begins with other predictions");
  if (const auto gone = keras::classes_without_keras3(*model_); !gone.empty())
    notes.push_back(fmt::format("Keras 3 has no {}: the trained model is for tutti alone", fmt::join(gone, ", ")));
  if (!notes.empty()) warning_ = fmt::format("a model of Keras 2: {}", fmt::join(notes, "; "));
  *model_ = keras::as_keras3(*model_);
}

std::vector<bool> Trainer::measured_outputs() const {
  std::vector<bool> out;
  for (const keras::Named& loss : training_.losses) out.push_back(!loss.name.empty());
  for (const auto* lists : {&metrics_.plain, &metrics_.weighted})
    for (size_t i = 0; i < lists->size(); ++i) out[i] = out[i] || !(*lists)[i].empty();
  return out;
}

void Trainer::read_compile_options() {
  const Json& compiled = model_->compile_config();
  const auto own = [&](const Json& given, const char* key) {
    if (!given.is_null()) return given;
    const Json* found = compiled.is_object() ? compiled.find(key) : nullptr;
    return found == nullptr ? Json() : *found;
  };
  const auto& outputs = model_->target_names();
  job_.loss = own(job_.loss, "loss");
  job_.loss_weights = own(job_.loss_weights, "loss_weights");
  job_.metrics = own(job_.metrics, "metrics");
  job_.weighted_metrics = own(job_.weighted_metrics, "weighted_metrics");
  for (Json* metrics : {&job_.metrics, &job_.weighted_metrics})  // Keras opens lists and tables by output only
    if (metrics->is_string() || (metrics->is_object() && (metrics->has("name") || metrics->has("class_name")))) {
      Json one = std::move(*metrics);
      *metrics = outputs.size() == 1 ? Json(JsonList{one}) : Json(JsonList(outputs.size(), Json(JsonList{one})));
    }
  if (job_.loss.is_null()) fail<InvalidArgument>("fit", "there is no loss, and the file was saved without one; hint: loss = \"mse\"");
  for (const Json& one : by_output(job_.loss, outputs, "loss", false)) {
    training_.losses.push_back(one.is_null() ? keras::Named{"loss", "", Json::object(), false} : keras::read_named(one, "loss"));
    const keras::Named& loss = training_.losses.back();
    if (!one.is_string() && keras::is_chosen_by_shapes(loss))
      fail<InvalidArgument>("fit",
                            "loss '{}' is a name alone; hint: binary_crossentropy, categorical_crossentropy or "
                            "sparse_categorical_crossentropy take arguments",
                            escape(loss.name, 40));
  }
  if (!job_.loss_weights.is_null())
    for (const Json& one : by_output(job_.loss_weights, outputs, "loss_weights", false)) {
      if (!one.is_null() && !(one.is_number() && std::isfinite(one.as_number())))
        fail<InvalidArgument>("fit", "loss_weights are numbers; got {}", escape(one.dump(), 60));
      training_.loss_weights.push_back(one.is_null() ? 1 : one.as_number());
    }
  const auto lists = [&](const Json& metrics, std::string_view what) {
    std::vector<std::vector<Json>> out;
    if (metrics.is_null()) return out;
    for (const Json& one : by_output(metrics, outputs, what, true))
      out.push_back(one.is_null() ? std::vector<Json>{} : one.is_list() ? one.items() : std::vector<Json>{one});
    return out;
  };
  metrics_ = {lists(job_.metrics, "metrics"), lists(job_.weighted_metrics, "weighted_metrics")};

  // Without an optimizer of its own, a job goes on where the file's stopped.
  Json optimizer = job_.optimizer;
  if (optimizer.is_null()) {
    optimizer = own(Json(), "optimizer");
    if (!optimizer.is_null() && job_.schedule.is_null() && job_.gradient_accumulation_steps == 1)
      optimizer_start_ = model_->optimizer_variables();
  }
  if (optimizer.is_null()) optimizer = "rmsprop";  // Keras's default
  keras::Named named = keras::read_named(optimizer, "optimizer");
  if (job_.gradient_accumulation_steps > 1) named.arguments.set("gradient_accumulation_steps", job_.gradient_accumulation_steps);
  optimizer_.emplace(std::move(named), job_.schedule);
  if (const Json* kind = model_->config().find("class_name"); kind != nullptr && kind->dump() == "\"Sequential\"")
    optimizer_->set_root(model_->name());
  const bool is_scaled = !optimizer_->is_several() && are_of_a_scale(model_->optimizer_variables());
  if (is_scaled || (is_mixed_float16(*model_) && own(Json(), "auto_scale_loss").dump() != "false")) optimizer_->scale_dynamically();
  // One that has not begun has fewer variables than it will have: nothing to go on with.
  if (optimizer_->dynamic_loss_scale() && optimizer_start_.size() <= *optimizer_->dynamic_loss_scale() + 1) optimizer_start_.clear();
  if (!optimizer_start_.empty() && optimizer_->last_is_untold()) optimizer_start_.push_back(optimizer_->untold_last(optimizer_start_));
  check_optimizer_start();
}

void Trainer::check_optimizer_start() {
  std::vector<keras::TrainedWeight> weights;
  for (const keras::Variable* variable : keras::trainable_variables(*model_))
    weights.push_back({variable->path, variable->value, {}, {}, {}});
  const auto own = optimizer_->variables(weights), unbegun = optimizer_->variables({});
  if (optimizer_start_.size() <= unbegun.size()) return;
  bool fits = optimizer_start_.size() == own.size();
  for (size_t i = 0; fits && i < own.size(); ++i) fits = optimizer_start_[i].shape() == own[i].initial.shape();
  if (fits) return;
  warning_ = fmt::format(
      "the file's optimizer has {} variables, and its {} trainable weights need {}, so it starts anew, as Keras lets it; "
      "hint: layers that are frozen or set free after compile() want another compile(), or give the job an optimizer",
      optimizer_start_.size(), weights.size(), own.size());
  optimizer_start_.clear();
}

void Trainer::describe(std::shared_ptr<const StepGraph> facts, std::vector<std::string> states) {
  facts_ = std::move(facts);
  states_ = std::move(states);
  columns_ = {"loss"};
  columns_.insert(columns_.end(), facts_->names.begin(), facts_->names.end());
  if (validation_) {
    columns_.emplace_back("val_loss");
    for (const auto& name : facts_->names) columns_.push_back("val_" + name);
  }
  const auto require = [&](const char* callback, const std::string& monitor) {
    if (std::find(columns_.begin(), columns_.end(), monitor) == columns_.end())
      fail<InvalidArgument>("fit", "{} monitors '{}', which is not measured{}", callback, escape(monitor), did_you_mean(monitor, columns_));
  };
  if (stopping_) require("early_stopping", stopping_->monitor());
  if (plateau_) require("reduce_on_plateau", plateau_->monitor());
  for (size_t m = 0; m < facts_->names.size(); ++m) {
    const std::optional<bool> rises = facts_->metrics[m].rises();
    const auto is_own = [&](const std::string& column) { return column == facts_->names[m] || column == "val_" + facts_->names[m]; };
    if (rises && stopping_ && is_own(stopping_->monitor())) stopping_->learn(*rises);
    if (rises && plateau_ && is_own(plateau_->monitor())) plateau_->learn(*rises);
  }
  if (plateau_) columns_.emplace_back(rate_column);
  check_labels();
}

// Numbers of classes that are none would take part in no loss, or in a wrong one.
void Trainer::check_labels() const {
  for (size_t i = 0; i < training_.losses.size() && i < facts_->predictions.size(); ++i) {
    const Shape& prediction = facts_->predictions[i];
    const keras::Named loss = keras::chosen_by_shapes(training_.losses[i], data_.y[i].type(1).shape, prediction);
    const std::string name = keras::plain_name(loss.name);
    if ((name != "sparsecategoricalcrossentropy" && name != "categoricalgeneralizedcrossentropy") || prediction.rank() < 2) continue;
    const Json* ignored = loss.arguments.find("ignore_class");
    const double classes = static_cast<double>(prediction[prediction.rank() - 1]);
    for (const FitData* data : {&data_, validation_ ? &*validation_ : nullptr}) {
      if (data == nullptr || data->y[i].waits()) continue;  // what is not held is taken as it comes
      const FitArray& labels = data->y[i];
      for (int64_t first = 0; first < labels.samples(); first += 4096) {
        std::vector<int64_t> rows(static_cast<size_t>(std::min<int64_t>(4096, labels.samples() - first)));
        std::iota(rows.begin(), rows.end(), first);
        Tensor some(labels.type(std::ssize(rows)));
        labels.copy(rows, some.bytes());
        const Tensor numbers = some.converted(DType::f64);
        const auto values = numbers.as<double>();
        for (size_t k = 0; k < values.size(); ++k) {
          const double label = std::trunc(values[k]);
          if ((label >= 0 && label < classes) || (ignored != nullptr && ignored->is_number() && label == ignored->as_number())) continue;
          fail<InvalidArgument>("fit", "the label of sample {}{} is {}; the output '{}' has {} classes, numbered from 0",
                                first + static_cast<int64_t>(k * rows.size() / values.size()), data == &data_ ? "" : " of the validation",
                                values[k], model_->output_names()[i], classes);
        }
      }
    }
  }
}

// Of the pass at hand.
void Trainer::make_order() {
  if (job_.shuffle) {
    order_ = shuffled(data_.samples(), static_cast<uint64_t>(job_.seed), static_cast<uint64_t>(pass_));
  } else if (order_.empty()) {
    order_.resize(static_cast<size_t>(data_.samples()));
    std::iota(order_.begin(), order_.end(), 0);
  }
}

void Trainer::plan_next() {
  const bool training = !validation_position_;
  const std::span<const int64_t> order = training ? order_ : validation_order_;
  const auto rest = order.subspan(static_cast<size_t>(training ? position_ : *validation_position_));
  const int64_t steps = training ? steps_at_once() : 1;
  next_.rows = rest.first(std::min(rest.size(), static_cast<size_t>(steps * job_.batch_size)));
  next_.kind = {training, std::ssize(next_.rows) / steps, steps};
  expect_next();
}

// The batches behind the one at hand, to the end of the pass.
void Trainer::expect_next() {
  FitData& data = data_of(next_);
  if (!data.waits()) return;
  const std::span<const int64_t> order = next_.kind.training ? order_ : validation_order_;
  auto rest = order.subspan(static_cast<size_t>(next_.rows.data() - order.data()));
  for (size_t i = 0; i < FitArray::most_ahead && !rest.empty(); ++i) {
    const auto rows = rest.first(std::min(rest.size(), next_.rows.size()));
    data.expect(rows);
    rest = rest.subspan(rows.size());
  }
}

// Several, if nothing has to happen between them.
int64_t Trainer::steps_at_once() const {
  const int64_t together = options_.steps_per_launch, every = options_.pause_every;
  const bool fits = position_ + together * job_.batch_size <= data_.samples() &&
                    (job_.steps_per_epoch == 0 || steps_of_epoch_ + together <= job_.steps_per_epoch) &&
                    (every == 0 || steps_ % every + together <= every);
  return fits ? together : 1;
}

// Inputs in the order of keras::TrainingGraph.
void Trainer::fill(size_t input, std::span<std::byte> to) const { fill_rows(input, next_.rows, nullptr, to); }

void Trainer::fill_part(size_t input, const Part& part, std::span<std::byte> to) const {
  const auto rows = part.samples == 0 ? next_.rows.first(1) : next_.rows.subspan(part.first, part.samples);
  fill_rows(input, rows, &part, to);
}

void Trainer::fill_rows(size_t input, std::span<const int64_t> rows, const Part* part, std::span<std::byte> to) const {
  const FitData& data = data_of(next_);
  if (input < data.x.size()) return data.x[input].copy(rows, to);
  input -= data.x.size();
  if (next_.kind.training) {
    if (input < 2) {
      for (int64_t i = 0; i < next_.kind.steps; ++i) {
        const auto number = static_cast<uint64_t>(input == 0 ? job_.seed : steps_ + i);
        std::memcpy(to.data() + static_cast<size_t>(i) * sizeof number, &number, sizeof number);
      }
      return;
    }
    input -= 2;
  }
  if (part != nullptr) {
    const float share =
        part->is_idle() ? 0 : static_cast<float>(static_cast<double>(part->samples) / static_cast<double>(next_.rows.size()));
    const auto first = static_cast<uint64_t>(part->first);
    if (input == 0) return void(std::memcpy(to.data(), &share, sizeof share));
    if (input == 1) return void(std::memcpy(to.data(), &first, sizeof first));
    input -= 2;
  }
  if (data.w.empty()) return data.y[input].copy(rows, to);
  (input % 2 == 0 ? data.y : data.w)[input / 2].copy(rows, to);
}

void Trainer::take(std::span<const std::span<const float>> outputs) {
  const int64_t steps = next_.kind.steps;
  for (int64_t i = 0; i < steps; ++i) take_one(outputs, i);
  plan_next();
}

void Trainer::take_one(std::span<const std::span<const float>> outputs, int64_t step) {
  const auto own = [&](size_t i) {
    const size_t each = outputs[i].size() / static_cast<size_t>(next_.kind.steps);
    return outputs[i].subspan(static_cast<size_t>(step) * each, each);
  };
  Totals& totals = next_.kind.training ? totals_ : validation_totals_;
  const double loss = static_cast<double>(own(0)[0]), count = static_cast<double>(next_.kind.batch);
  totals.loss += loss * count;
  totals.samples += count;
  totals.sums.resize(facts_->metrics.size());
  for (size_t m = 0; m < totals.sums.size(); ++m) {
    const auto values = own(m + 1);
    totals.sums[m].resize(values.size());
    for (size_t k = 0; k < values.size(); ++k) totals.sums[m][k] += static_cast<double>(values[k]);
  }
  if (validation_position_) {
    *validation_position_ += next_.kind.batch;
    if (*validation_position_ == validation_->samples()) end_epoch();
    return;
  }
  if (!std::isfinite(loss)) {
    const auto batch = static_cast<size_t>(next_.kind.batch);
    const std::string cause = data_.broken_sample(next_.rows.subspan(static_cast<size_t>(step) * batch, batch));
    // Of NaN the sign says nothing.
    fail<InvalidArgument>("fit", "the loss of step {} (epoch {}) is {}{}", steps_, epoch_, std::isnan(loss) ? std::fabs(loss) : loss,
                          cause.empty() ? "" : ": " + cause);
  }
  if (options_.log_steps) losses_.push_back(static_cast<float>(loss));
  ++steps_;
  ++steps_of_epoch_;
  position_ += next_.kind.batch;
  const bool pass_ends = position_ == data_.samples();
  if (pass_ends) {
    position_ = 0;
    ++pass_;
    make_order();
  }
  if (job_.steps_per_epoch > 0 ? steps_of_epoch_ == job_.steps_per_epoch : pass_ends) {
    if (validation_)
      validation_position_ = 0;
    else
      end_epoch();
  }
}

void Trainer::add_results(const Totals& totals, std::vector<double>& row) const {
  row.push_back(totals.loss / totals.samples);
  for (size_t m = 0; m < facts_->metrics.size(); ++m) row.push_back(facts_->metrics[m].result(totals.sums[m]));
  for (double& value : row)  // one NaN, of which a checkpoint keeps no sign
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
}

void Trainer::end_epoch() {
  std::vector<double> row;
  add_results(totals_, row);
  last_loss_ = row[0];
  if (validation_) add_results(validation_totals_, row);
  history_.push_back(std::move(row));
  if (plateau_) reduce_learning_rate();
  totals_ = validation_totals_ = {};
  validation_position_.reset();
  steps_of_epoch_ = 0;
  bool stop = false;
  if (stopping_) {
    const auto verdict = stopping_->after_epoch(epoch_, measured(stopping_->monitor()));
    if (verdict.best && stopping_->restores_best()) best_ = snapshot();
    stop = verdict.stop;
  }
  ++epoch_;
  if (stop)
    stopped_because_ = "early_stopping";
  else if (epoch_ == job_.epochs)
    stopped_because_ = "epochs";
  if (is_done()) finish();
}

double Trainer::measured(const std::string& column) const {
  return history_.back()[static_cast<size_t>(std::find(columns_.begin(), columns_.end(), column) - columns_.begin())];
}

void Trainer::reduce_learning_rate() {
  const size_t state = place(optimizer_state(optimizer_->learning_rate_variable())).value();
  const float rate = values_->read(state).as<float>()[0];
  history_.back().push_back(static_cast<double>(rate));
  const float next = plateau_->after_epoch(measured(plateau_->monitor()), rate);
  if (next != rate) values_->write(state, Tensor::scalar(next));
}

std::optional<size_t> Trainer::place(const std::string& state) const {
  const auto found = std::find(states_.begin(), states_.end(), state);
  return found == states_.end() ? std::nullopt : std::optional(static_cast<size_t>(found - states_.begin()));
}

// The values of all variables now, in the model's order.
std::vector<Tensor> Trainer::snapshot() const {
  std::vector<Tensor> out;
  for (const keras::Variable* variable : model_->variables().flatten()) {
    const auto state = place(variable->path);
    out.push_back(state ? values_->read(*state) : variable->value);
  }
  return out;
}

// The variables get their final values: trained ones, their averages, or those of the best epoch.
void Trainer::finish() {
  const auto variables = model_->variables().flatten();
  std::vector<Tensor> values = snapshot();
  if (optimizer_->averages()) {
    const auto trained = keras::trainable_variables(*model_);
    size_t average = optimizer_->first_average();
    for (const keras::Variable* variable : trained)
      for (size_t i = 0; i < variables.size(); ++i)
        if (variables[i] == variable && place(variable->path)) values[i] = values_->read(*place(optimizer_state(average++)));
  }
  if (!best_.empty()) values = best_;
  for (size_t i = 0; i < variables.size(); ++i) variables[i]->value = values[i];
}

int64_t Trainer::expected_steps() const {
  const int64_t samples = data_.samples(), size = job_.batch_size;
  return job_.epochs * (job_.steps_per_epoch > 0 ? job_.steps_per_epoch : (samples + size - 1) / size);
}

std::shared_ptr<const keras::Model> Trainer::take_model() {
  if (!is_done() && values_ != nullptr) finish();
  return std::move(model_);
}

void Trainer::write(const std::string& folder, bool durable) {
  make_folder(folder);
  OutputFile history(folder + "/history.csv");
  std::string line = "epoch";
  for (const auto& column : columns_) line += "," + column;
  history.write(line + "\n");
  for (size_t epoch = 0; epoch < history_.size(); ++epoch) {
    line = std::to_string(epoch);
    for (double value : history_[epoch]) line += fmt::format(",{}", value);
    history.write(line + "\n");
  }
  history.commit(durable);
  if (!classes_.empty()) {  // as `tutti predict --labels` reads them
    OutputFile labels(folder + "/labels.txt");
    for (const auto& name : classes_) labels.write(name + "\n");
    labels.commit(durable);
  }
  if (options_.log_steps) {
    OutputFile file(folder + "/steps.csv");
    file.write("step,loss\n");
    for (size_t i = 0; i < losses_.size(); ++i) file.write(fmt::format("{},{}\n", i, losses_[i]));
    file.commit(durable);
  }
  // The last one: where it is, --resume takes the job for finished.
  keras::CompiledWith compiled{optimizer_->config(), job_.loss, job_.loss_weights, job_.metrics, job_.weighted_metrics, {}};
  for (size_t i = 0; const auto state = place(optimizer_state(i)); ++i) compiled.optimizer_variables.push_back(values_->read(*state));
  if (optimizer_->last_is_untold()) compiled.optimizer_variables.pop_back();
  keras::write_model(folder + "/model.keras", *model_, &compiled, durable);
}

}  // namespace tutti
