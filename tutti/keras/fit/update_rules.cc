#include "tutti/keras/fit/update_rules.h"

#include <cmath>

#include "tutti/base/error.h"

namespace tutti::keras {

namespace update_rules {

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
  if (w.shape.rank() < 2 && w.is_inside) return slots_like(w, {"velocity"});
  if (w.shape.rank() < 2) return {{{"row", {}}, {"column", {}}, {"velocity", w.shape}}};  // the first two are never used
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
  Value& velocity = u.s.back();
  if (u.w.rank() >= 2) {
    u.s[0] = u.s[0] * kept + mean(squares, {-1}) * one_minus(kept);
    u.s[1] = u.s[1] * kept + mean(squares, {-2}) * one_minus(kept);
    velocity = expand_dims(u.s[0] / mean(u.s[0], {-1}, true), {-1}) * expand_dims(u.s[1], {-2});
  } else {
    velocity = velocity * kept + squares * one_minus(kept);
  }
  const Value change = u.g / sqrt(velocity);
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

}  // namespace update_rules

const Optimizer::Row& Optimizer::row_of(const Named& named) {
  using namespace update_rules;
  static const Row rows[] = {
      {"sgd", "SGD", sgd_slots, sgd, "momentum[0,1] nesterov", 0.01},
      {"rmsprop", "RMSprop", rmsprop_slots, rmsprop, "rho(,) momentum[0,1] epsilon(,) centered"},
      {"adam", "Adam", adam_slots, adam, "beta_1(,) beta_2(,) epsilon(,) amsgrad"},
      {"adam_w adamw", "AdamW", adam_slots, adam, "beta_1(,) beta_2(,) epsilon(,) amsgrad", 0.001, 0.004},
      {"adamax", "Adamax", adamax_slots, adamax, "beta_1(,) beta_2(,) epsilon(,)"},
      {"adagrad", "Adagrad", adagrad_slots, adagrad, "initial_accumulator_value(,) epsilon(,)"},
      {"adadelta", "Adadelta", adadelta_slots, adadelta, "rho(,) epsilon(,)"},
      {"nadam", "Nadam", moment_slots, nadam, "beta_1(,) beta_2(,) epsilon(,)"},
      {"ftrl", "Ftrl", ftrl_slots, ftrl,
       "learning_rate_power(,0] initial_accumulator_value[0,) l1_regularization_strength[0,) l2_regularization_strength[0,) "
       "l2_shrinkage_regularization_strength[0,) beta(,)"},
      {"lion", "Lion", lion_slots, lion, "beta_1(0,1] beta_2(,)"},
      {"lamb", "Lamb", moment_slots, lamb, "beta_1(,) beta_2(,) epsilon(,)"},
      {"adafactor", "Adafactor", adafactor_slots, adafactor, "beta_2_decay(,) epsilon_1(,) epsilon_2(,) clip_threshold(,) relative_step"},
      {"muon", "Muon", muon_slots, muon,
       "adam_beta_1(,) adam_beta_2(,) adam_weight_decay(,) epsilon(,) exclude_layers exclude_embeddings muon_a(,) muon_b(,) muon_c(,) "
       "adam_lr_ratio(,) momentum[0,1] ns_steps{0,1000} nesterov rms_rate(,)",
       0.001, 0.004},
      {"schedule_free_adam_w schedule_free_adamw", "ScheduleFreeAdamW", schedule_free_slots, schedule_free_adamw,
       "beta_1(,) beta_2(,) epsilon(,) warmup_steps{0,}", 0.0025},
  };
  return find_row(rows, named);
}

// Of a LossScaleOptimizer, `named` becomes the optimizer inside.

}  // namespace tutti::keras
