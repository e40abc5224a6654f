#include "tutti/keras/fit/optimizers.h"

#include <cmath>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/fit/schedules.h"

namespace tutti::keras {

// What the rows of the table of optimizers are made of.
namespace update_rules {

// A variable of the optimizer that belongs to a weight.
struct Slot {
  std::string name;
  Shape shape;
  double fill = 0;
  bool copies_weight = false;
};
// Keras makes the first group for all weights, then the second, ...
using SlotGroups = std::vector<std::vector<Slot>>;

struct WeightFacts {
  const std::string& path;
  const Shape& shape;
};

// One weight's update: `w` and the slots `s` are replaced by their next values.
struct Step {
  const Config& c;
  const std::string& path;
  Value w, g;
  Value lr, count;  // scalars; count is that of this step, from 1
  Value shared;     // of all weights, already updated
  std::vector<Value> s;
};

}  // namespace update_rules

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

Value one_number(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }
Value one_minus(Value x) { return one_number(x, 1) - x; }
Value root_mean_square(Value x) { return sqrt(mean(square(x), all_axes(x))); }

SlotGroups slots_like(const WeightFacts& w, std::initializer_list<const char*> names) {
  SlotGroups out(1);
  for (const char* name : names) out[0].push_back({name, w.shape});
  return out;
}

// a moves towards b.
Value moved(Value a, Value b, double part) { return a + (b - a) * part; }

SlotGroups sgd_slots(const Config& c, const WeightFacts& w) {
  return c.number("momentum", 0) != 0 ? slots_like(w, {"momentum"}) : SlotGroups{};
}

void sgd(Step& u) {
  const double momentum = u.c.number("momentum", 0);
  const Value change = u.g * u.lr;
  if (momentum == 0) {
    u.w = u.w - change;
    return;
  }
  u.s[0] = u.s[0] * momentum - change;
  u.w = u.w + (u.c.flag("nesterov", false) ? u.s[0] * momentum - change : u.s[0]);
}

SlotGroups rmsprop_slots(const Config& c, const WeightFacts& w) {
  SlotGroups out = slots_like(w, {"velocity"});
  if (c.number("momentum", 0) > 0) out.push_back({{"momentum", w.shape}});
  if (c.flag("centered", false)) out.push_back({{"average_gradient", w.shape}});
  return out;
}

void rmsprop(Step& u) {
  const double rho = u.c.number("rho", 0.9), momentum = u.c.number("momentum", 0), epsilon = u.c.number("epsilon", 1e-7);
  u.s[0] = u.s[0] * rho + square(u.g) * (1 - rho);
  Value below = u.s[0];
  if (u.c.flag("centered", false)) {
    Value& average = u.s.back();
    average = average * rho + u.g * (1 - rho);
    below = below - square(average);
  }
  const Value change = u.g * u.lr / sqrt(below + epsilon);
  if (momentum > 0) u.s[1] = u.s[1] * momentum + change;
  u.w = u.w - (momentum > 0 ? u.s[1] : change);
}

SlotGroups adam_slots(const Config& c, const WeightFacts& w) {
  SlotGroups out = slots_like(w, {"momentum", "velocity"});
  if (c.flag("amsgrad", false)) out.push_back({{"velocity_hat", w.shape}});
  return out;
}

// The learning rate with both moments' bias taken out.
Value corrected_rate(const Step& u, double beta_1, double beta_2) {
  return u.lr * sqrt(one_minus(power(one_number(u.count, beta_2), u.count))) / one_minus(power(one_number(u.count, beta_1), u.count));
}

void adam_update(Step& u, double beta_1, double beta_2, Value rate) {
  u.s[0] = moved(u.s[0], u.g, 1 - beta_1);
  u.s[1] = moved(u.s[1], square(u.g), 1 - beta_2);
  Value velocity = u.s[1];
  if (u.s.size() > 2) velocity = u.s[2] = maximum(u.s[2], velocity);
  u.w = u.w - u.s[0] * rate / (sqrt(velocity) + u.c.number("epsilon", 1e-7));
}

void adam(Step& u) {
  const double beta_1 = u.c.number("beta_1", 0.9), beta_2 = u.c.number("beta_2", 0.999);
  adam_update(u, beta_1, beta_2, corrected_rate(u, beta_1, beta_2));
}

SlotGroups adamax_slots(const Config&, const WeightFacts& w) { return slots_like(w, {"momentum", "norm"}); }

void adamax(Step& u) {
  const double beta_1 = u.c.number("beta_1", 0.9), beta_2 = u.c.number("beta_2", 0.999);
  u.s[0] = moved(u.s[0], u.g, 1 - beta_1);
  u.s[1] = maximum(u.s[1] * beta_2, abs(u.g));
  u.w = u.w - u.s[0] * u.lr / ((u.s[1] + u.c.number("epsilon", 1e-7)) * one_minus(power(one_number(u.count, beta_1), u.count)));
}

SlotGroups adagrad_slots(const Config& c, const WeightFacts& w) {
  return {{{"accumulator", w.shape, c.number("initial_accumulator_value", 0.1)}}};
}

void adagrad(Step& u) {
  u.s[0] = u.s[0] + square(u.g);
  u.w = u.w - u.g * u.lr / sqrt(u.s[0] + u.c.number("epsilon", 1e-7));
}

SlotGroups adadelta_slots(const Config&, const WeightFacts& w) { return slots_like(w, {"accumulated_grad", "accumulated_delta_var"}); }

void adadelta(Step& u) {
  const double rho = u.c.number("rho", 0.95), epsilon = u.c.number("epsilon", 1e-7);
  u.s[0] = u.s[0] * rho + square(u.g) * (1 - rho);
  const Value change = -(sqrt(u.s[1] + epsilon) * u.g / sqrt(u.s[0] + epsilon));
  u.s[1] = u.s[1] * rho + square(change) * (1 - rho);
  u.w = u.w + change * u.lr;
}

SlotGroups moment_slots(const Config&, const WeightFacts& w) { return slots_like(w, {"momentum", "velocity"}); }

// What Nesterov's momentum is scheduled by, at step `count`.
Value nadam_momentum(const Config& c, Value count) { return (1 - power(one_number(count, 0.96), count) * 0.5) * c.number("beta_1", 0.9); }

void nadam(Step& u) {
  const double beta_1 = u.c.number("beta_1", 0.9), beta_2 = u.c.number("beta_2", 0.999);
  const Value now = nadam_momentum(u.c, u.count), next = nadam_momentum(u.c, u.count + 1);
  u.s[0] = moved(u.s[0], u.g, 1 - beta_1);
  u.s[1] = moved(u.s[1], square(u.g), 1 - beta_2);
  const Value mean_ = u.s[0] * (next / one_minus(u.shared * next)) + u.g * (one_minus(now) / one_minus(u.shared));
  const Value variance_ = u.s[1] / one_minus(power(one_number(u.count, beta_2), u.count));
  u.w = u.w - mean_ * u.lr / (sqrt(variance_) + u.c.number("epsilon", 1e-7));
}

SlotGroups ftrl_slots(const Config& c, const WeightFacts& w) {
  return {{{"accumulator", w.shape, c.number("initial_accumulator_value", 0.1)}, {"linear", w.shape}}};
}

void ftrl(Step& u) {
  const double sharpness = -u.c.number("learning_rate_power", -0.5), l1 = u.c.number("l1_regularization_strength", 0),
               shrinkage = u.c.number("l2_shrinkage_regularization_strength", 0);
  const Value l2 = u.c.number("beta", 0) / (u.lr * 2) + u.c.number("l2_regularization_strength", 0);
  const auto raised = [&](Value x) { return sharpness == 0.5 ? sqrt(x) : power(x, sharpness); };
  const Value gradient = shrinkage == 0 ? u.g : u.g + u.w * (2 * shrinkage);
  const Value sum_ = u.s[0] + square(u.g);
  u.s[1] = u.s[1] + (gradient - (raised(sum_) - raised(u.s[0])) / u.lr * u.w);
  const Value quadratic = raised(sum_) / u.lr + l2 * 2;
  u.w = (clamp(u.s[1], -l1, l1) - u.s[1]) / quadratic;
  u.s[0] = sum_;
}

SlotGroups lion_slots(const Config&, const WeightFacts& w) { return slots_like(w, {"momentum"}); }

void lion(Step& u) {
  const double beta_1 = u.c.number("beta_1", 0.9), beta_2 = u.c.number("beta_2", 0.99);
  u.w = u.w - sign(u.s[0] * beta_1 + u.g * (1 - beta_1)) * u.lr;
  u.s[0] = u.s[0] * beta_2 + u.g * (1 - beta_2);
}

void lamb(Step& u) {
  const double beta_1 = u.c.number("beta_1", 0.9), beta_2 = u.c.number("beta_2", 0.999);
  u.s[0] = moved(u.s[0], u.g, 1 - beta_1);
  u.s[1] = moved(u.s[1], square(u.g), 1 - beta_2);
  const Value below = sqrt(u.s[1] / one_minus(power(one_number(u.count, beta_2), u.count))) + u.c.number("epsilon", 1e-7);
  const Value change = u.s[0] / one_minus(power(one_number(u.count, beta_1), u.count)) / below;
  const Value weight_norm = sqrt(sum(square(u.w), all_axes(u.w))), change_norm = sqrt(sum(square(change), all_axes(change)));
  const Value both = logical_and(compare(weight_norm, 0, Direction::GT), compare(change_norm, 0, Direction::GT));
  const Value ratio = select(both, weight_norm / change_norm, one_number(weight_norm, 1));
  u.w = u.w - change * (ratio * u.lr);
}

SlotGroups adafactor_slots(const Config&, const WeightFacts& w) {
  if (w.shape.rank() < 2) return {{{"row", {}}, {"column", {}}, {"velocity", w.shape}}};
  Ints row = w.shape.extents(), column = row;
  row.pop_back();
  column.erase(column.end() - 2);
  return {{{"row", row}, {"column", column}, {"velocity", w.shape}}};
}

void adafactor(Step& u) {
  const Value falling = one_number(u.count, 1) / sqrt(u.count);
  // A schedule is never relative to the step; then the learning rate is no argument.
  const Value rate = minimum(u.lr, falling);
  const Value alpha = maximum(root_mean_square(u.w), u.c.number("epsilon_2", 1e-3)) * rate;
  const Value squares = square(u.g) + u.c.number("epsilon_1", 1e-30);
  const Value kept = one_minus(power(u.count, u.c.number("beta_2_decay", -0.8)));
  if (u.w.rank() >= 2) {
    u.s[0] = u.s[0] * kept + mean(squares, {-1}) * one_minus(kept);
    u.s[1] = u.s[1] * kept + mean(squares, {-2}) * one_minus(kept);
    u.s[2] = expand_dims(u.s[0] / mean(u.s[0], {-1}, true), {-1}) * expand_dims(u.s[1], {-2});
  } else {
    u.s[2] = u.s[2] * kept + squares * one_minus(kept);
  }
  const Value change = u.g / sqrt(u.s[2]);
  u.w = u.w - change / maximum(root_mean_square(change) / u.c.number("clip_threshold", 1), 1.0) * alpha;
}

// Whether a weight of Muon is left to Adam.
bool is_for_adam(const Config& c, const std::string& path, const Shape& shape) {
  if (shape.rank() != 2) return true;
  if (c.flag("exclude_embeddings", true) && plain_name(path).find("embedding") != std::string::npos) return true;
  if (c.has("exclude_layers"))
    for (const Json& keyword : c.get("exclude_layers").items()) {
      // Keras searches for it as a regular expression; one from a file could take any time.
      if (keyword.as_string().find_first_of("\\^$.|?*+()[]{}") != std::string::npos)
        fail<Unsupported>("optimizer", "muon's exclude_layers are plain words here; got the pattern '{}'", escape(keyword.as_string(), 60));
      if (path.find(keyword.as_string()) != std::string::npos) return true;
    }
  return false;
}

SlotGroups muon_slots(const Config& c, const WeightFacts& w) {
  return is_for_adam(c, w.path, w.shape) ? slots_like(w, {"momentum", "velocity"}) : slots_like(w, {"momentum"});
}

// The nearest orthogonal matrix, by Newton and Schulz.
Value orthogonalized(Value x, const Config& c) {
  const double a = c.number("muon_a", 3.4445), b = c.number("muon_b", -4.7750), d = c.number("muon_c", 2.0315);
  const bool tall = x.extent(-2) > x.extent(-1);
  if (tall) x = swapaxes(x, -2, -1);
  x = x / (sqrt(sum(square(x), all_axes(x))) + 1e-7);
  for (int64_t i = 0; i < c.integer("ns_steps", 5); ++i) {
    const Value products = matmul(x, swapaxes(x, -2, -1));
    x = x * a + matmul(products * b + matmul(products * d, products), x);
  }
  return tall ? swapaxes(x, -2, -1) : x;
}

void muon(Step& u) {
  if (u.s.size() > 1) {
    const double beta_1 = u.c.number("adam_beta_1", 0.9), beta_2 = u.c.number("adam_beta_2", 0.999);
    adam_update(u, beta_1, beta_2, corrected_rate(u, beta_1, beta_2) * u.c.number("adam_lr_ratio", 1));
    return;
  }
  const double momentum = u.c.number("momentum", 0.95);
  u.s[0] = u.s[0] + (u.g + u.s[0] * (momentum - 1));
  Value change = orthogonalized(u.c.flag("nesterov", true) ? u.g + u.s[0] * momentum : u.s[0], u.c) * u.lr;
  const bool adjusts = !u.c.json().has("rms_rate") || u.c.has("rms_rate");
  if (adjusts) change = change * (std::sqrt(static_cast<double>(std::max(u.w.extent(0), u.w.extent(1)))) * u.c.number("rms_rate", 0.2));
  u.w = u.w - change;
}

SlotGroups schedule_free_slots(const Config&, const WeightFacts& w) { return {{{"momentum", w.shape, 0, true}, {"velocity", w.shape}}}; }

void schedule_free_adamw(Step& u) {
  const double beta_1 = u.c.number("beta_1", 0.9), beta_2 = u.c.number("beta_2", 0.999), warmup = u.c.number("warmup_steps", 0);
  const Value rate = warmup > 0 ? u.lr * minimum(u.count / warmup, 1.0) : u.lr;
  const Value before = u.s[0];
  u.s[1] = moved(u.s[1], square(u.g), 1 - beta_2);
  const Value below = sqrt(u.s[1] / one_minus(power(one_number(u.count, beta_2), u.count))) + u.c.number("epsilon", 1e-8);
  u.s[0] = before - u.g * rate / below;
  const Value part = one_number(u.count, 1) / u.count;
  const Value averaged = (u.w - before * (1 - beta_1)) / beta_1 * one_minus(part) + u.s[0] * part;
  u.w = u.s[0] * (1 - beta_1) + averaged * beta_1;
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
    " learning_rate weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor "
    "gradient_accumulation_steps";

}  // namespace

struct Optimizer::Row {
  std::string_view names, class_name;
  update_rules::SlotGroups (*slots)(const Config&, const update_rules::WeightFacts&);
  void (*update)(update_rules::Step&);
  std::string_view options;
  double learning_rate = 0.001;
  std::optional<double> weight_decay = {};
};

const Optimizer::Row& Optimizer::row_of(const Named& named) {
  static const Row rows[] = {
      {"sgd", "SGD", sgd_slots, sgd, "momentum nesterov", 0.01},
      {"rmsprop", "RMSprop", rmsprop_slots, rmsprop, "rho momentum epsilon centered"},
      {"adam", "Adam", adam_slots, adam, "beta_1 beta_2 epsilon amsgrad"},
      {"adam_w adamw", "AdamW", adam_slots, adam, "beta_1 beta_2 epsilon amsgrad", 0.001, 0.004},
      {"adamax", "Adamax", adamax_slots, adamax, "beta_1 beta_2 epsilon"},
      {"adagrad", "Adagrad", adagrad_slots, adagrad, "initial_accumulator_value epsilon"},
      {"adadelta", "Adadelta", adadelta_slots, adadelta, "rho epsilon"},
      {"nadam", "Nadam", moment_slots, nadam, "beta_1 beta_2 epsilon"},
      {"ftrl", "Ftrl", ftrl_slots, ftrl,
       "learning_rate_power initial_accumulator_value l1_regularization_strength l2_regularization_strength "
       "l2_shrinkage_regularization_strength beta"},
      {"lion", "Lion", lion_slots, lion, "beta_1 beta_2"},
      {"lamb", "Lamb", moment_slots, lamb, "beta_1 beta_2 epsilon"},
      {"adafactor", "Adafactor", adafactor_slots, adafactor, "beta_2_decay epsilon_1 epsilon_2 clip_threshold relative_step"},
      {"muon", "Muon", muon_slots, muon,
       "adam_beta_1 adam_beta_2 adam_weight_decay epsilon exclude_layers exclude_embeddings muon_a muon_b muon_c adam_lr_ratio momentum "
       "ns_steps nesterov rms_rate",
       0.001, 0.004},
      {"schedule_free_adam_w schedule_free_adamw", "ScheduleFreeAdamW", schedule_free_slots, schedule_free_adamw,
       "beta_1 beta_2 epsilon warmup_steps", 0.0025},
  };
  if (plain_name(named.name) == "multioptimizer")
    fail<Unsupported>("fit", "optimizer '{}' is not done; hint: one optimizer for all weights", named.name);
  return find_row(rows, named);
}

// Of a LossScaleOptimizer, `named` becomes the optimizer inside.
std::optional<Optimizer::Scaling> Optimizer::read_scaling(Named& named) {
  if (plain_name(named.name) != "lossscaleoptimizer") return {};
  check_arguments(named, "inner_optimizer initial_scale dynamic_growth_steps gradient_accumulation_steps");
  const Config c = named.config();
  if (!c.has("inner_optimizer")) c.invalid("has an 'inner_optimizer'; hint: inner_optimizer = \"adam\"");
  Scaling out;
  out.initial = c.number("initial_scale", out.initial);
  out.growth_steps = c.positive("dynamic_growth_steps", out.growth_steps, int64_t{1} << 30);
  if (!(out.initial > 0)) c.invalid("'initial_scale' is more than 0; got {}", out.initial);
  Named inner = read_named(c.get("inner_optimizer"), named.what);
  if (plain_name(inner.name) == "lossscaleoptimizer") c.invalid("its 'inner_optimizer' is another one");
  if (c.has("gradient_accumulation_steps")) inner.arguments.set("gradient_accumulation_steps", c.get("gradient_accumulation_steps"));
  inner.arguments.set("loss_scale_factor", nullptr);  // the loss is scaled once
  named = std::move(inner);
  return out;
}

Optimizer::Optimizer(Named named, const Json& schedule) : named_(std::move(named)), scaling_(read_scaling(named_)), row_(&row_of(named_)) {
  check_arguments(named_, std::string(row_->options) + std::string(common_options));
  const Config c = named_.config();
  const Json& rate = c.get("learning_rate");
  if (!schedule.is_null()) {
    schedule_ = read_named(schedule, "schedule");
  } else if (rate.is_object()) {
    schedule_ = read_named(rate, "schedule");
  }
  check_finite(named_);
  if (schedule_) check_finite(*schedule_);
  if (!rate.is_null() && !rate.is_object() && !(rate.is_number() && rate.as_number() >= 0))
    c.invalid("'learning_rate' is a number from 0, or a schedule; got {}", escape(rate.dump(), 60));
  for (const char* key : {"momentum", "ema_momentum"})
    if (const double value = c.number(key, 0); !(value >= 0 && value <= 1)) c.invalid("'{}' is between 0 and 1; got {}", key, value);
  accumulation_ = c.positive("gradient_accumulation_steps", 1, int64_t{1} << 30);
  int clips = 0;
  for (const char* key : {"clipnorm", "clipvalue", "global_clipnorm"}) clips += c.has(key) ? 1 : 0;
  if (clips > 1) fail<InvalidArgument>("fit", "{}: only one of clipnorm, clipvalue and global_clipnorm is given", c.where());
}

void Optimizer::scale_dynamically() {
  if (scaling_) return;
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
  Json arguments = named_.arguments;
  if (schedule_) {
    Json inner = schedule_->arguments;
    const Json& rate = named_.config().get("learning_rate");
    if (rate.is_number() && !inner.has("initial_learning_rate") && plain_name(schedule_->name) != "piecewiseconstantdecay")
      inner.set("initial_learning_rate", rate);
    arguments.set("learning_rate", JsonMembers{{"module", "keras.optimizers.schedules"},
                                               {"class_name", schedule_class(*schedule_)},
                                               {"config", inner},
                                               {"registered_name", nullptr}});
  } else if (!arguments.has("learning_rate")) {
    arguments.set("learning_rate", row_->learning_rate);
  } else {
    arguments.set("learning_rate", arguments.at("learning_rate").as_number());
  }
  if (accumulation_ == 1 && arguments.has("gradient_accumulation_steps")) arguments.set("gradient_accumulation_steps", nullptr);
  return JsonMembers{{"module", "keras.optimizers"}, {"class_name", row_->class_name}, {"config", arguments}, {"registered_name", nullptr}};
}

double Optimizer::loss_scale() const { return named_.config().number("loss_scale_factor", 1); }
bool Optimizer::averages() const { return named_.config().flag("use_ema", false); }
size_t Optimizer::first_average() const { return own_variables() + (schedule_ ? 1 : 2); }
std::optional<size_t> Optimizer::dynamic_loss_scale() const { return scaling_ ? std::optional<size_t>(3) : std::nullopt; }

std::vector<OptimizerVariable> Optimizer::variables(const std::vector<TrainedWeight>& weights) const {
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
      const SlotGroups slots = row_->slots(c, {weight.path, weight.initial.shape()});
      groups = std::max(groups, slots.size());
      if (group >= slots.size()) continue;
      for (const Slot& slot : slots[group])
        add(slot.name, weight.path, slot.copies_weight ? weight.initial : filled({weight.initial.dtype(), slot.shape}, slot.fill));
    }
  if (row_->update == nadam) out.push_back({"u_product", Tensor::scalar<float>(1)});
  return out;
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
      const SlotGroups slots = row_->slots(c, {weights[i].path, weights[i].value.shape()});
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
