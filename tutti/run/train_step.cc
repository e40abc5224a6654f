#include "tutti/run/train_step.h"

#include <algorithm>
#include <map>

#include "tutti/base/error.h"
#include "tutti/graph/build.h"
#include "tutti/keras/fit/regularizers.h"
#include "tutti/transform/differentiate.h"
#include "tutti/transform/replicate.h"

namespace tutti {

std::string optimizer_state(size_t index) { return "optimizer/" + std::to_string(index); }

namespace {

// Sums of metrics, as further values of the graph.
class MetricSums {
 public:
  MetricSums(const keras::Model& model, keras::TrainingGraph& forward, const keras::TrainingOptions& options, StepGraph& out)
      : outputs_(model.target_names()), forward_(forward), batch_(options.batch), training_(options.training), out_(out) {}

  // Several outputs log a loss each.
  void add_losses() {
    if (std::count_if(forward_.losses.begin(), forward_.losses.end(), [](ValueId id) { return id >= 0; }) < 2) return;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (forward_.losses[i] < 0) continue;
      // A part's loss is its share of the whole batch's: times all samples, parts add up as batches do.
      const Value loss = value(forward_.losses[i]) * static_cast<double>(batch_);
      const Value total = reshape(forward_.share < 0 ? loss : loss / value(forward_.share), {1});
      keep(keras::Metric::mean(outputs_[i] + "_loss"), outputs_[i] + "_loss",
           concatenate({total, full(forward_.graph, {DType::f32, {1}}, static_cast<double>(batch_))}, 0));
    }
  }

  void add(const std::vector<std::vector<Json>>& lists, bool weighted) {
    for (size_t i = 0; i < lists.size(); ++i) {
      keras::MetricInputs inputs{value(forward_.targets[i]), value(forward_.predictions[i]), {}, {}};
      if (weighted && forward_.weights[i] >= 0) inputs.weight = value(forward_.weights[i]);
      if (forward_.masks[i] >= 0 && !training_) inputs.mask = value(forward_.masks[i]);
      const std::string prefix = lists.size() > 1 ? outputs_[i] + "_" : "";
      for (const Json& json : lists[i]) {
        keras::Metric metric(json, inputs.target.shape(), inputs.prediction.shape());
        const Value sums = metric.sums(inputs);
        const std::string name = prefix + metric.name(),
                          own = weighted && used_.contains(name) ? prefix + "weighted_" + metric.name() : name;
        keep(std::move(metric), unused(own), sums);
      }
    }
  }

  const std::vector<ValueId>& ids() const { return ids_; }

 private:
  Value value(ValueId id) { return {&forward_.graph, id}; }
  // As Keras tells equal names apart: a, a_1, a_2.
  std::string unused(const std::string& name) {
    const int count = used_[name]++;
    return count == 0 ? name : name + "_" + std::to_string(count);
  }
  void keep(keras::Metric metric, std::string name, Value sums) {
    ids_.push_back(sums.id());
    out_.names.push_back(std::move(name));
    out_.metrics.push_back(std::move(metric));
  }
  const std::vector<std::string>& outputs_;
  keras::TrainingGraph& forward_;
  int64_t batch_;
  bool training_;  // while training, Keras's metrics do not see masks: those of JAX get lost on the way out of the gradient
  StepGraph& out_;
  std::map<std::string, int> used_;
  std::vector<ValueId> ids_;
};

std::vector<ValueId> add_metrics(const keras::Model& model, keras::TrainingGraph& forward, const MetricLists& lists,
                                 const keras::TrainingOptions& options, StepGraph& out) {
  MetricSums sums(model, forward, options, out);
  sums.add_losses();
  sums.add(lists.plain, false);
  sums.add(lists.weighted, true);
  for (ValueId id : forward.predictions) out.predictions.push_back(forward.graph.type(id).shape);
  return sums.ids();
}

// A statistic's next value; of a part, its share of it: together they are the mean.
Value own_share(Differentiated& step, const keras::TrainingGraph& forward, const keras::TrainingGraph::Statistic& statistic) {
  const Value next = step.now(statistic.next);
  return forward.share < 0 ? next : next * convert(step.now(forward.share), next.dtype());
}

// Up to the gradients.
struct WithGradients {
  keras::TrainingGraph forward;
  Differentiated step;
  ValueId scale;  // the state that the loss was multiplied by; -1: none
};

// The state of variable i of the optimizer, which begins as `initial` says, if it says anything.
Value add_variable(Graph& graph, const std::vector<keras::OptimizerVariable>& all, size_t i, const std::vector<Tensor>& initial) {
  const Type& type = all[i].initial.type();
  if (i < initial.size() && !(initial[i].shape() == type.shape))
    fail<InvalidArgument>("fit", "the optimizer's {} is {}; the file has {}", all[i].name, to_string(type), to_string(initial[i].type()));
  const Tensor value = i < initial.size() ? initial[i].converted(type.dtype) : all[i].initial;
  return graph.parameter(Graph::Role::state, optimizer_state(i), type, value);
}

WithGradients with_gradients(const keras::Model& model, const keras::TrainingOptions& options, const keras::Optimizer& optimizer,
                             const MetricLists& metrics, const std::vector<Tensor>& initial, StepGraph& out) {
  keras::TrainingGraph forward = keras::lower_training(model, options);
  const std::vector<ValueId> sums = add_metrics(model, forward, metrics, options, out);
  std::vector<ValueId> by;
  for (const auto& trained : forward.trained) by.push_back(trained.value);
  ValueId scaled = forward.loss, scale = -1;
  if (optimizer.loss_scale() != 1) scaled = (Value(&forward.graph, scaled) * optimizer.loss_scale()).id();
  if (const auto at = optimizer.dynamic_loss_scale()) {
    const Value state = add_variable(forward.graph, optimizer.variables({}), *at, initial);
    scale = state.id();
    scaled = (Value(&forward.graph, scaled) * state).id();
  }
  Differentiated step = differentiate(forward.graph, scaled, by);
  step.graph.output("loss", step.now(forward.loss));
  for (size_t i = 0; i < sums.size(); ++i) step.graph.output(out.names[i], step.now(sums[i]));
  if (scale >= 0) scale = step.values[at(scale)];
  return {std::move(forward), std::move(step), scale};
}

// The optimizer's part: weights with their values and gradients get their next ones.
void add_update(Graph& graph, const keras::Optimizer& optimizer, std::vector<keras::TrainedWeight>& weights,
                const std::vector<keras::TrainingGraph::Trained>& trained, const std::vector<Tensor>& initial, ValueId scale = -1) {
  std::vector<Value> variables;
  const auto all = optimizer.variables(weights);
  for (size_t i = 0; i < all.size(); ++i)
    variables.push_back(scale >= 0 && i == optimizer.dynamic_loss_scale() ? Value(&graph, scale) : add_variable(graph, all, i, initial));
  const auto next = optimizer.apply(weights, variables, [&](size_t i, Value value) {
    const Json& constraint = trained[i].constraint;
    return constraint.is_null() ? value : keras::constrained(constraint, value);
  });
  for (const auto& weight : weights) graph.update(weight.value, weight.next);
  for (size_t i = 0; i < next.size(); ++i)
    if (next[i].id() != variables[i].id()) graph.update(variables[i], next[i]);
}

}  // namespace

StepGraph train_step(const keras::Model& model, const keras::TrainingOptions& options, const keras::Optimizer& optimizer,
                     const MetricLists& metrics, const std::vector<Tensor>& initial) {
  StepGraph out;
  auto [forward, step, scale] = with_gradients(model, options, optimizer, metrics, initial, out);
  std::vector<keras::TrainedWeight> weights;
  std::vector<Value> sums;  // over replicas: gradients, then statistics
  for (size_t i = 0; i < forward.trained.size(); ++i) sums.push_back(step.gradient(i));
  for (const auto& statistic : forward.statistics) sums.push_back(own_share(step, forward, statistic));
  if (options.is_part) sums = reduce_in_buckets(sums, options.replicas);
  for (size_t i = 0; i < forward.trained.size(); ++i) {
    const auto& [variable, value, constraint] = forward.trained[i];
    weights.push_back({variable->path, variable->value, step.now(value), sums[i], {}});
  }
  add_update(step.graph, optimizer, weights, forward.trained, initial, scale);
  for (size_t i = 0; i < forward.statistics.size(); ++i)
    step.graph.update(step.now(forward.statistics[i].value), sums[forward.trained.size() + i]);
  out.graph = std::move(step.graph);
  return out;
}

SplitStep split_train_step(const keras::Model& model, const keras::TrainingOptions& options, const keras::Optimizer& optimizer,
                           const MetricLists& metrics, const std::vector<Tensor>& initial) {
  SplitStep out;
  auto [forward, step, scale] = with_gradients(model, options, optimizer, metrics, initial, out.part);
  std::vector<keras::TrainedWeight> weights;
  for (size_t i = 0; i < forward.trained.size(); ++i) {
    const auto& variable = *forward.trained[i].variable;
    step.graph.output("gradient " + variable.path, step.gradient(i));
    const Value value = out.update.parameter(Graph::Role::state, variable.path, variable.type, variable.value);
    weights.push_back({variable.path, variable.value, value, out.update.input("gradient " + variable.path, step.gradient(i).type()), {}});
  }
  add_update(out.update, optimizer, weights, forward.trained, initial);
  for (const auto& statistic : forward.statistics) {
    const Value own = own_share(step, forward, statistic);
    step.graph.output("statistic " + statistic.variable->path, own);
    const Value value =
        out.update.parameter(Graph::Role::state, statistic.variable->path, statistic.variable->type, statistic.variable->value);
    out.update.update(value, out.update.input("statistic " + statistic.variable->path, own.type()));
  }
  out.part.graph = std::move(step.graph);
  return out;
}

StepGraph evaluation_step(const keras::Model& model, const keras::TrainingOptions& options, const MetricLists& metrics) {
  StepGraph out;
  keras::TrainingGraph forward = keras::lower_training(model, options);
  const std::vector<ValueId> sums = add_metrics(model, forward, metrics, options, out);
  forward.graph.output("loss", Value(&forward.graph, forward.loss));
  for (size_t i = 0; i < sums.size(); ++i) forward.graph.output(out.names[i], Value(&forward.graph, sums[i]));
  out.graph = std::move(forward.graph);
  return out;
}

}  // namespace tutti
