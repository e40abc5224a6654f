// The optimizers of keras.optimizers: from gradients to the new values of weights and of the optimizer's own variables, in the same graph.
#pragma once

#include <functional>
#include <optional>

#include "tutti/graph/graph.h"
#include "tutti/keras/fit/named.h"

namespace tutti::keras {

// A variable of the optimizer, in the order of Keras's optimizer.variables: the count of steps, the learning rate if it is a number, then
// what the update needs.
struct OptimizerVariable {
  std::string name;  // for people: "momentum of dense/kernel"
  Tensor initial;
};

struct TrainedWeight {
  std::string path;  // "dense/kernel"
  Tensor initial;    // its value before training
  Value value;       // a state of the graph
  Value gradient;
  Value next;  // set by Optimizer::apply
};

class Optimizer {
 public:
  // `schedule` replaces the learning rate; null: the optimizer's own argument, a number or a serialized schedule. Throws InvalidArgument
  // for unknown names and arguments, Unsupported for what is not done.
  Optimizer(Named named, const Json& schedule);

  const std::string& name() const { return named_.name; }
  // As Keras serializes it, for the compile config of a file.
  Json config() const;
  double loss_scale() const;  // the loss is multiplied by it before it is differentiated
  // LossScaleOptimizer: where the scale stands among variables(), which every step may change; loss_scale() is then 1.
  std::optional<size_t> dynamic_loss_scale() const;
  // As Keras wraps the optimizer of a model of the policy mixed_float16.
  void scale_dynamically();
  bool has_schedule() const { return schedule_.has_value(); }
  // MultiOptimizer: weights are given to optimizers inside by their paths, which begin with `root` as Keras sees them.
  bool is_several() const { return !parts_.empty(); }
  void set_root(std::string root) { root_ = std::move(root); }
  size_t learning_rate_variable() const { return own_variables() + 1; }  // where it stands among variables(), without a schedule
  // The learning rate, whatever it is by itself, is multiplied by `factor` in the end, and by what lies between on the way: 1 before the
  // first of so many steps.
  void scale_rate(double factor, int64_t warmup_steps);
  bool averages() const;  // use_ema: average_variables() become the weights in the end
  std::vector<OptimizerVariable> variables(const std::vector<TrainedWeight>& weights) const;
  // Where the averages of the weights stand among variables().
  size_t first_average() const;
  // Keras loses sight of Nadam's product of momenta inside a LossScaleOptimizer: the last one of variables() is in no file then, and
  // follows from the others.
  bool last_is_untold() const;
  Tensor untold_last(const std::vector<Tensor>& others) const;

  // Sets `next` of each weight; gives the next values of `variables`, which are states of the graph in the order of variables().
  // `constrain` is asked for each weight after its update.
  std::vector<Value> apply(std::vector<TrainedWeight>& weights, const std::vector<Value>& variables,
                           const std::function<Value(size_t weight, Value next)>& constrain) const;

 private:
  struct Row;
  // LossScaleOptimizer around it.
  struct Scaling {
    double initial = 32768;
    int64_t growth_steps = 2000;
  };
  static const Row& row_of(const Named& named);
  static std::optional<Scaling> read_scaling(Named& named);
  size_t own_variables() const { return scaling_ ? 4 : 0; }  // of what is around it; they come first
  Json plain_config() const;
  // An optimizer of several, for weights whose path its pattern fits; the last one, without a pattern, is for the others.
  struct Part;
  static std::vector<Part> read_parts(const Named& named, const Json& schedule);
  Json config_of_parts() const;
  // By part, which of the weights are its.
  std::vector<std::vector<size_t>> weights_of_parts(const std::vector<TrainedWeight>& weights) const;
  std::vector<OptimizerVariable> variables_of_parts(const std::vector<TrainedWeight>& weights) const;
  std::vector<Value> apply_parts(std::vector<TrainedWeight>& weights, const std::vector<Value>& variables,
                                 const std::function<Value(size_t weight, Value next)>& constrain) const;
  std::vector<Value> apply_plain(std::vector<TrainedWeight>& weights, const std::vector<Value>& variables,
                                 const std::function<Value(size_t weight, Value next)>& constrain) const;
  double weight_decay(const TrainedWeight& weight) const;
  Value learning_rate(Value iterations, const std::vector<Value>& variables) const;
  Named named_;
  std::optional<Scaling> scaling_;
  std::vector<Part> parts_;  // of one: none
  std::string root_;
  std::optional<Named> schedule_;
  const Row* row_;
  int64_t accumulation_ = 1;
  double rate_factor_ = 1;
  int64_t warmup_steps_ = 0;
};

struct Optimizer::Part {
  std::string pattern;
  Optimizer optimizer;
};

}  // namespace tutti::keras
