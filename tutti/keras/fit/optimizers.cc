#include "tutti/keras/fit/optimizers.h"

#include <cmath>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/fit/schedules.h"
#include "tutti/keras/fit/update_rules.h"

namespace tutti::keras {

namespace {

using namespace update_rules;

Tensor filled(const Type& type, double value) {
  Tensor out(type);
  dispatch(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (T& element : out.as<T>()) element = convert_element<T>(value);
  });
  return out;
}

Value clipped_by_norm(Value g, double limit) {
  const Value squares = sum(square(g), all_axes(g)), any = compare(squares, 0, Direction::GT);
  const Value norm = select(any, sqrt(select(any, squares, one_number(squares, 1))), squares);
  return g * limit / maximum(norm, limit);
}

void clip(const Config& c, std::vector<Value>& gradients) {
  if (const double limit = c.number("clipnorm", 0); limit > 0) {
    for (Value& g : gradients) g = clipped_by_norm(g, limit);
  } else if (const double all = c.number("global_clipnorm", 0); all > 0 && !gradients.empty()) {
    Value squares;
    for (Value g : gradients) {
      const Value own = convert(sum(square(g), all_axes(g)), DType::f32);
      squares = squares ? squares + own : own;
    }
    const Value norm = sqrt(squares);
    const Value scale = minimum(1.0 / norm, 1 / all) * all + (norm - norm);  // an infinite norm makes all NaN, as Keras does
    for (Value& g : gradients) g = g * convert(scale, g.dtype());
  } else if (const double most = c.number("clipvalue", 0); most > 0) {
    for (Value& g : gradients) g = clamp(g, -most, most);
  }
}

// Averages of the weights after this step, which every so often become the weights.
void average(const Config& c, Value rounds, std::vector<TrainedWeight>& weights, size_t first, const std::vector<Value>& variables,
             std::vector<Value>& next) {
  const Value started = convert(compare(rounds, 0, Direction::NE), DType::f32) * c.number("ema_momentum", 0.99);
  const int64_t overwrites = c.integer("ema_overwrite_frequency", 0);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Value kept = convert(started, weights[i].next.dtype());
    next[first + i] = variables[first + i] * kept + weights[i].next * one_minus(kept);
    if (overwrites <= 0) continue;
    const Value now = compare(remainder(rounds + 1, one_number(rounds, static_cast<double>(overwrites))), 0, Direction::EQ);
    weights[i].next = select(broadcast_in_dim(now, weights[i].next.shape(), {}), next[first + i], weights[i].next);
  }
}

constexpr std::string_view common_options =
    " learning_rate[0,) weight_decay(,) clipnorm(,) clipvalue(,) global_clipnorm(,) use_ema ema_momentum[0,1] ema_overwrite_frequency{0,} "
    "loss_scale_factor(,) gradient_accumulation_steps{1,1073741824}";

}  // namespace

std::optional<Optimizer::Scaling> Optimizer::read_scaling(Named& named) {
  if (plain_name(named.name) != "lossscaleoptimizer") return {};
  check_arguments(named, "inner_optimizer initial_scale(0,) dynamic_growth_steps{1,1073741824} gradient_accumulation_steps{1,1073741824}");
  const Config c = named.config();
  if (!c.has("inner_optimizer")) c.invalid("has an 'inner_optimizer'; hint: inner_optimizer = \"adam\"");
  Scaling out;
  out.initial = c.number("initial_scale", out.initial);
  out.growth_steps = c.integer("dynamic_growth_steps", out.growth_steps);
  Named inner = read_named(c.get("inner_optimizer"), named.what);
  if (plain_name(inner.name) == "lossscaleoptimizer") c.invalid("its 'inner_optimizer' is another one");
  if (c.has("gradient_accumulation_steps")) inner.arguments.set("gradient_accumulation_steps", c.get("gradient_accumulation_steps"));
  inner.arguments.set("loss_scale_factor", nullptr);  // the loss is scaled once
  named = std::move(inner);
  return out;
}

Optimizer::Optimizer(Named named, const Json& schedule)
    : named_(std::move(named)),
      scaling_(read_scaling(named_)),
      parts_(read_parts(named_, schedule)),
      row_(is_several() ? nullptr : &row_of(named_)) {
  if (is_several()) {
    if (scaling_) fail<Unsupported>("fit", "{}: a LossScaleOptimizer around several optimizers is not done", named_.config().where());
    return;
  }
  check_arguments(named_, std::string(row_->options) + std::string(common_options));
  const Config c = named_.config();
  const Json& rate = c.get("learning_rate");
  if (!schedule.is_null()) {
    schedule_ = read_named(schedule, "schedule");
  } else if (rate.is_object()) {
    schedule_ = read_named(rate, "schedule");
  }
  accumulation_ = c.integer("gradient_accumulation_steps", 1);
  int clips = 0;
  for (const char* key : {"clipnorm", "clipvalue", "global_clipnorm"}) clips += c.has(key) ? 1 : 0;
  if (clips > 1) fail<InvalidArgument>("fit", "{}: only one of clipnorm, clipvalue and global_clipnorm is given", c.where());
}

void Optimizer::scale_dynamically() {
  if (scaling_) return;
  if (is_several()) fail<Unsupported>("fit", "{}: is not done with the policy mixed_float16", named_.config().where());
  scaling_ = Scaling{};
  named_.arguments.set("loss_scale_factor", nullptr);
}

Json Optimizer::config() const {
  if (!scaling_) return plain_config();
  const Json arguments = JsonMembers{{"name", "loss_scale_optimizer"},
                                     {"inner_optimizer", plain_config()},
                                     {"initial_scale", scaling_->initial},
                                     {"dynamic_growth_steps", scaling_->growth_steps}};
  return JsonMembers{
      {"module", "keras.optimizers"}, {"class_name", "LossScaleOptimizer"}, {"config", arguments}, {"registered_name", nullptr}};
}

Json Optimizer::plain_config() const {
  if (is_several()) return config_of_parts();
  Json arguments = written_arguments(named_, std::string(row_->options) + std::string(common_options));
  if (schedule_) {
    Json inner = written_schedule(*schedule_);
    const Json& rate = named_.config().get("learning_rate");
    if (!inner.has("initial_learning_rate") && plain_name(schedule_->name) != "piecewiseconstantdecay")
      inner.set("initial_learning_rate", rate.is_number() ? rate.as_number() : row_->learning_rate);
    arguments.set("learning_rate", JsonMembers{{"module", "keras.optimizers.schedules"},
                                               {"class_name", schedule_class(*schedule_)},
                                               {"config", inner},
                                               {"registered_name", nullptr}});
  } else if (!arguments.has("learning_rate")) {
    arguments.set("learning_rate", row_->learning_rate);
  }
  if (accumulation_ == 1 && arguments.has("gradient_accumulation_steps")) arguments.set("gradient_accumulation_steps", nullptr);
  return JsonMembers{{"module", "keras.optimizers"}, {"class_name", row_->class_name}, {"config", arguments}, {"registered_name", nullptr}};
}

double Optimizer::loss_scale() const { return named_.config().number("loss_scale_factor", 1); }
bool Optimizer::averages() const { return named_.config().flag("use_ema", false); }
size_t Optimizer::first_average() const { return own_variables() + (schedule_ ? 1 : 2); }
std::optional<size_t> Optimizer::dynamic_loss_scale() const { return scaling_ ? std::optional<size_t>(3) : std::nullopt; }

std::vector<OptimizerVariable> Optimizer::variables(const std::vector<TrainedWeight>& weights) const {
  if (is_several()) return variables_of_parts(weights);
  const Config c = named_.config();
  std::vector<OptimizerVariable> out;
  if (scaling_) {  // a counter and a rate that nobody uses, the steps since the scale grew, the scale
    out.push_back({"iteration of the scale", Tensor::scalar<int64_t>(0)});
    out.push_back({"learning_rate of the scale", Tensor::scalar<float>(0)});
    out.push_back({"step_counter", Tensor::scalar<int32_t>(0)});
    out.push_back({"dynamic_scale", Tensor::scalar<float>(static_cast<float>(scaling_->initial))});
  }
  out.push_back({"iteration", Tensor::scalar<int64_t>(0)});
  if (!schedule_)
    out.push_back({"learning_rate", Tensor::scalar<float>(static_cast<float>(c.number("learning_rate", row_->learning_rate)))});
  const auto add = [&](std::string name, const std::string& path, Tensor initial) {
    out.push_back({std::move(name) + " of " + path, std::move(initial)});
  };
  if (averages())
    for (const auto& weight : weights) add("average", weight.path, filled(weight.initial.type(), 0));
  if (accumulation_ > 1)
    for (const auto& weight : weights) add("gradient_accumulator", weight.path, filled(weight.initial.type(), 0));
  size_t groups = 1;
  for (size_t group = 0; group < groups; ++group)
    for (const auto& weight : weights) {
      const SlotGroups slots = row_->slots(c, {weight.path, weight.initial.shape(), scaling_.has_value()});
      groups = std::max(groups, slots.size());
      if (group >= slots.size()) continue;
      for (const Slot& slot : slots[group])
        add(slot.name, weight.path, slot.copies_weight ? weight.initial : filled({weight.initial.dtype(), slot.shape}, slot.fill));
    }
  if (row_->update == nadam) out.push_back({"u_product", Tensor::scalar<float>(1)});
  return out;
}

bool Optimizer::last_is_untold() const { return !is_several() && scaling_ && row_->update == nadam; }

Tensor Optimizer::untold_last(const std::vector<Tensor>& others) const {
  const int64_t updates = others.at(own_variables()).converted(DType::i64).as<int64_t>()[0] / accumulation_;
  const auto beta_1 = static_cast<float>(named_.config().number("beta_1", 0.9));
  float product = 1;
  for (int64_t step = 1; step <= updates && product != 0; ++step)
    product *= (1 - 0.5f * std::pow(0.96f, static_cast<float>(step))) * beta_1;
  return Tensor::scalar<float>(product);
}

double Optimizer::weight_decay(const TrainedWeight& weight) const {
  const Config c = named_.config();
  const bool adam_of_muon = row_->update == muon && is_for_adam(c, weight.path, weight.value.shape());
  const char* key = adam_of_muon ? "adam_weight_decay" : "weight_decay";
  if (c.json().has(key)) return c.number(key, 0);
  return adam_of_muon ? 0.004 : row_->weight_decay.value_or(0);
}

void Optimizer::scale_rate(double factor, int64_t warmup_steps) {
  rate_factor_ = factor;
  warmup_steps_ = warmup_steps;
  for (Part& part : parts_) part.optimizer.scale_rate(factor, warmup_steps);
}

Value Optimizer::learning_rate(Value iterations, const std::vector<Value>& variables) const {
  const Value count = convert(iterations, DType::f32);
  const auto scaled = [&](Value rate) {
    if (rate_factor_ == 1) return rate;
    if (warmup_steps_ <= 0) return rate * rate_factor_;
    return rate * (minimum((count + 1) / static_cast<double>(warmup_steps_), 1.0) * (rate_factor_ - 1) + 1);
  };
  if (!schedule_) return scaled(variables[1]);
  const Json& rate = named_.config().get("learning_rate");
  return scaled(schedule(*schedule_, count, rate.is_number() ? rate.as_number() : row_->learning_rate));
}

std::vector<Value> Optimizer::apply(std::vector<TrainedWeight>& weights, const std::vector<Value>& variables,
                                    const std::function<Value(size_t weight, Value next)>& constrain) const {
  if (is_several()) return apply_parts(weights, variables, constrain);
  if (!scaling_ || weights.empty()) return apply_plain(weights, variables, constrain);
  // Where a gradient is not finite, the step is left out and the scale halved; after so many steps without, it is doubled.
  const Value steps = variables[2], scale = variables[3];
  Value finite;
  for (TrainedWeight& weight : weights) {
    const Value own = reduce(convert(unary(Op::is_finite, weight.gradient), DType::f32), "min", all_axes(weight.gradient));
    finite = finite ? minimum(finite, own) : own;
    weight.gradient = weight.gradient / convert(scale, weight.gradient.dtype());
  }
  const Value goes_on = compare(finite, 0, Direction::GT);
  const std::vector<Value> inner(variables.begin() + static_cast<std::ptrdiff_t>(own_variables()), variables.end());
  const std::vector<Value> updated = apply_plain(weights, inner, constrain);
  std::vector<Value> next(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(own_variables()));
  const Value grows = compare(steps, one_number(steps, static_cast<double>(scaling_->growth_steps - 1)), Direction::EQ);
  next[2] = select(logical_and(goes_on, logical_not(grows)), steps + 1, one_number(steps, 0));
  next[3] = select(goes_on, select(grows, scale * 2, scale), scale * 0.5);
  const auto unless_left_out = [&](Value now, Value before) { return select(broadcast_in_dim(goes_on, now.shape(), {}), now, before); };
  for (size_t i = 0; i < inner.size(); ++i)
    next.push_back(updated[i].id() == inner[i].id() ? inner[i] : unless_left_out(updated[i], inner[i]));
  for (TrainedWeight& weight : weights) weight.next = unless_left_out(weight.next, weight.value);
  return next;
}

std::vector<Value> Optimizer::apply_plain(std::vector<TrainedWeight>& weights, const std::vector<Value>& variables,
                                          const std::function<Value(size_t weight, Value next)>& constrain) const {
  const Config c = named_.config();
  std::vector<Value> next = variables;
  const Value iterations = variables[0];
  next[0] = iterations + 1;
  const Value rate = learning_rate(iterations, variables);
  const auto every = [&](Value count, int64_t times) {  // whether count + 1 is a multiple
    return compare(remainder(count + 1, one_number(count, static_cast<double>(times))), 0, Direction::EQ);
  };
  const Value updates = accumulation_ > 1 ? every(iterations, accumulation_) : Value();
  const Value rounds = accumulation_ > 1 ? iterations / one_number(iterations, static_cast<double>(accumulation_)) : iterations;
  const Value count = convert(rounds + 1, DType::f32);
  const auto chosen = [&](Value now, Value before) {  // a small batch between two updates leaves all as it is
    return updates ? select(broadcast_in_dim(updates, now.shape(), {}), now, before) : now;
  };

  size_t at = first_average() - own_variables();
  const size_t averages_at = at;
  if (averages()) at += weights.size();
  std::vector<Value> gradients;
  for (auto& weight : weights) {
    Value g = convert(weight.gradient, weight.value.dtype());
    if (loss_scale() != 1) g = g / loss_scale();
    gradients.push_back(g);
  }
  if (accumulation_ > 1) {
    for (Value& g : gradients) {
      const Value total = g + variables[at];
      next[at++] = select(broadcast_in_dim(updates, g.shape(), {}), full_like(g, 0), total);
      g = total / static_cast<double>(accumulation_);
    }
  }
  clip(c, gradients);

  // Slots lie group by group, in each of them weight by weight.
  std::vector<std::vector<size_t>> places(weights.size());
  size_t groups = 1;
  for (size_t group = 0; group < groups; ++group)
    for (size_t i = 0; i < weights.size(); ++i) {
      const SlotGroups slots = row_->slots(c, {weights[i].path, weights[i].value.shape(), scaling_.has_value()});
      groups = std::max(groups, slots.size());
      for (size_t k = 0; group < slots.size() && k < slots[group].size(); ++k) places[i].push_back(at++);
    }
  Value shared;
  if (row_->update == nadam) {
    shared = variables[at] * nadam_momentum(c, count);
    next[at] = chosen(shared, variables[at]);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    TrainedWeight& weight = weights[i];
    const auto as_weight = [&](Value x) { return x ? convert(x, weight.value.dtype()) : x; };
    Step step{c, weight.path, weight.value, gradients[i], as_weight(rate), as_weight(count), as_weight(shared), {}};
    if (const double decay = weight_decay(weight); decay != 0) step.w = step.w - step.w * (step.lr * decay);
    for (size_t place : places[i]) step.s.push_back(variables[place]);
    row_->update(step);
    weight.next = chosen(step.w, weight.value);
    for (size_t k = 0; k < places[i].size(); ++k) next[places[i][k]] = chosen(step.s[k], variables[places[i][k]]);
  }
  if (averages()) average(c, rounds, weights, averages_at, variables, next);
  for (size_t i = 0; i < weights.size(); ++i) weights[i].next = constrain(i, weights[i].next);
  return next;
}

}  // namespace tutti::keras
