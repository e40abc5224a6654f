// The table of optimizers: what variables each has for a weight, and how it updates it.
#pragma once

#include "tutti/graph/compose.h"
#include "tutti/keras/fit/optimizers.h"

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
  bool is_inside;  // of a LossScaleOptimizer, where Keras loses sight of variables that are only placeholders
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

inline Value one_number(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }
inline Value one_minus(Value x) { return one_number(x, 1) - x; }

// Rules of which more is asked than their row tells: Nadam has a variable of all weights, Muon leaves some weights to Adam.
void nadam(Step& u);
Value nadam_momentum(const Config& c, Value count);
void muon(Step& u);
bool is_for_adam(const Config& c, const std::string& path, const Shape& shape);

}  // namespace update_rules

struct Optimizer::Row {
  std::string_view names, class_name;
  update_rules::SlotGroups (*slots)(const Config&, const update_rules::WeightFacts&);
  void (*update)(update_rules::Step&);
  std::string_view options;
  double learning_rate = 0.001;
  std::optional<double> weight_decay = {};
};

}  // namespace tutti::keras
