#include "tutti/keras/fit/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"

namespace tutti::keras {

namespace {

struct ScheduleArguments {
  const Config& config;
  Value step;
  double initial;  // learning rate
};

Value constant_of(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }

Value passed(const ScheduleArguments& a) {
  const Value part = a.step / a.config.number("decay_steps");
  return a.config.flag("staircase", false) ? floor(part) : part;
}

Value exponential_decay(const ScheduleArguments& a) {
  return power(constant_of(a.step, a.config.number("decay_rate")), passed(a)) * a.initial;
}

Value inverse_time_decay(const ScheduleArguments& a) { return a.initial / (passed(a) * a.config.number("decay_rate") + 1); }

Value piecewise_constant_decay(const ScheduleArguments& a) {
  const std::vector<double> boundaries = a.config.numbers("boundaries"), values = a.config.numbers("values");
  if (values.size() != boundaries.size() + 1)
    fail<InvalidArgument>("fit", "{}: has one value more than boundaries; got {} and {}", a.config.where(), values.size(),
                          boundaries.size());
  if (!std::is_sorted(boundaries.begin(), boundaries.end()))
    fail<InvalidArgument>("fit", "{}: boundaries rise; got {}", a.config.where(), escape(a.config.get("boundaries").dump(), 80));
  Value rate = constant_of(a.step, values.back());
  for (size_t i = boundaries.size(); i-- > 0;)  // boundaries are cast to the counter's integers
    rate = select(compare(a.step, std::trunc(boundaries[i]), Direction::LE), constant_of(a.step, values[i]), rate);
  return rate;
}

Value polynomial_decay(const ScheduleArguments& a) {
  const double steps = a.config.number("decay_steps"), end = a.config.number("end_learning_rate", 0.0001);
  Value part;
  if (a.config.flag("cycle", false)) {
    const Value rounds = select(compare(a.step, 0, Direction::EQ), constant_of(a.step, 1), unary(Op::ceil, a.step / steps));
    part = a.step / (rounds * steps);
  } else {
    part = minimum(a.step, steps) / steps;
  }
  // Where the product is rounded with the difference, what is left in the end can be less than nothing, which has no root.
  return power(maximum(1 - part, 0.0), a.config.number("power", 1)) * (a.initial - end) + end;
}

Value half_cosine(Value part) { return (unary(Op::cosine, part * std::numbers::pi) + 1) * 0.5; }

Value cosine_decay(const ScheduleArguments& a) {
  const double steps = a.config.number("decay_steps"), alpha = a.config.number("alpha", 0);
  const auto decayed = [&](Value step, double from) { return (half_cosine(step / steps) * (1 - alpha) + alpha) * from; };
  if (!a.config.has("warmup_target")) return decayed(minimum(a.step, steps), a.initial);
  const double warmup = a.config.number("warmup_steps", 0), target = a.config.number("warmup_target");
  const Value step = minimum(a.step, steps + warmup), later = decayed(step - warmup, target);
  if (warmup <= 0) return later;
  return select(compare(step, warmup, Direction::LT), step / warmup * (target - a.initial) + a.initial, later);
}

Value cosine_decay_restarts(const ScheduleArguments& a) {
  const double first = a.config.number("first_decay_steps"), t_mul = a.config.number("t_mul", 2), m_mul = a.config.number("m_mul", 1),
               alpha = a.config.number("alpha", 0);
  Value part = a.step / first, restarts;
  if (t_mul == 1) {
    restarts = floor(part);
    part = part - restarts;
  } else {
    restarts = floor(log(1 - part * (1 - t_mul)) / std::log(t_mul));
    const Value longer = power(constant_of(part, t_mul), restarts);
    part = (part - (1 - longer) / (1 - t_mul)) / longer;
  }
  const Value height = power(constant_of(part, m_mul), restarts);
  return (half_cosine(part) * height * (1 - alpha) + alpha) * a.initial;
}

struct ScheduleRow {
  std::string_view names, class_name;
  Value (*function)(const ScheduleArguments&);
  std::string_view options;
  bool has_initial = true;
};

const ScheduleRow schedule_rows[] = {
    {"exponential_decay", "ExponentialDecay", exponential_decay, "decay_steps(0,) decay_rate(,) staircase"},
    {"inverse_time_decay", "InverseTimeDecay", inverse_time_decay, "decay_steps(0,) decay_rate(,) staircase"},
    {"piecewise_constant_decay", "PiecewiseConstantDecay", piecewise_constant_decay, "boundaries(,) values(,)", false},
    {"polynomial_decay", "PolynomialDecay", polynomial_decay, "decay_steps(0,) end_learning_rate(,) power(,) cycle"},
    {"cosine_decay", "CosineDecay", cosine_decay, "decay_steps(0,) alpha(,) warmup_target(,) warmup_steps(,)"},
    {"cosine_decay_restarts", "CosineDecayRestarts", cosine_decay_restarts, "first_decay_steps(0,) t_mul(0,) m_mul(,) alpha(,)"},
};

std::string options_of_schedule(const ScheduleRow& row) {
  return std::string(row.options) + (row.has_initial ? " initial_learning_rate(,)" : "");
}

}  // namespace

Value schedule(const Named& named, Value step, double initial) {
  const ScheduleRow& row = find_row(schedule_rows, named);
  check_arguments(named, options_of_schedule(row));
  const Config config = named.config();
  return row.function({config, step, config.number("initial_learning_rate", initial)});
}

Json written_schedule(const Named& named) { return written_arguments(named, options_of_schedule(find_row(schedule_rows, named))); }

std::string_view schedule_class(const Named& named) { return find_row(schedule_rows, named).class_name; }

}  // namespace tutti::keras
