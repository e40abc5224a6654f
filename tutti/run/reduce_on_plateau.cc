#include "tutti/run/reduce_on_plateau.h"

#include <algorithm>

namespace tutti {

ReduceOnPlateau::ReduceOnPlateau(const Json& options)
    : ReduceOnPlateau(
          read_callback(options, "reduce_on_plateau", "monitor factor[0,1) patience{,} verbose mode min_delta(,) cooldown{,} min_lr(,)")
              .config()) {}

ReduceOnPlateau::ReduceOnPlateau(const keras::Config& config)
    : monitor_(config, 1e-4),
      factor_(config.number("factor", 0.1)),
      least_(config.number("min_lr", 0)),
      patience_(config.integer("patience", 10)),
      cooldown_(config.integer("cooldown", 0)) {}

Json ReduceOnPlateau::memory() const { return JsonList{best_ ? Json(*best_) : Json(), wait_, cooling_}; }

void ReduceOnPlateau::remember(const Json& memory) {
  best_.reset();
  if (!memory[0].is_null()) best_ = memory[0].as_number();
  wait_ = memory[1].as_int();
  cooling_ = memory[2].as_int();
}

float ReduceOnPlateau::after_epoch(double value, float rate) {
  if (cooling_ > 0) {
    --cooling_;
    wait_ = 0;
  }
  if (monitor_.improves(value, best_)) {
    best_ = value;
    wait_ = 0;
    return rate;
  }
  if (cooling_ > 0 || ++wait_ < patience_ || rate <= static_cast<float>(least_)) return rate;
  cooling_ = cooldown_;
  wait_ = 0;
  return static_cast<float>(std::max(static_cast<double>(rate) * factor_, least_));
}

}  // namespace tutti
