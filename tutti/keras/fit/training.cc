#include "tutti/keras/fit/training.h"

#include "tutti/base/error.h"
#include "tutti/graph/build.h"
#include "tutti/keras/fit/losses.h"

namespace tutti::keras {

namespace {

void collect_trained(const Scope& scope, bool frozen, std::set<const Variable*>& out) {
  frozen = frozen || !scope.trainable();
  for (const auto& variable : scope.variables())
    if (!frozen && variable->trainable && !variable->repeats && is_float(variable->type.dtype)) out.insert(variable.get());
  for (const auto& child : scope.children()) collect_trained(*child, frozen, out);
}

ValueId id_or_none(Value value) { return value ? value.id() : -1; }

}  // namespace

std::vector<const Variable*> trainable_variables(const Model& model) {
  std::set<const Variable*> trained;
  collect_trained(model.variables(), false, trained);
  std::vector<const Variable*> out;
  for (const Variable* variable : model.variables().flatten())
    if (trained.contains(variable)) out.push_back(variable);
  return out;
}

TrainingGraph lower_training(const Model& model, const TrainingOptions& options) {
  const size_t outputs = model.output_names().size();
  if (options.targets.size() != outputs || options.losses.size() != outputs)
    fail<InvalidArgument>("fit", "the model has {} outputs; got {} targets and {} losses", outputs, options.targets.size(),
                          options.losses.size());
  const std::vector<const Variable*> trained = trainable_variables(model);
  Fit fit;
  fit.training = options.training;
  fit.is_part = options.is_part;
  fit.accumulates = options.accumulates;
  fit.synchronizes = options.synchronizes;
  fit.replicas = options.replicas;
  fit.trained = {trained.begin(), trained.end()};
  TrainingGraph out;
  Graph& graph = out.graph;
  model.lower_training(graph, {options.batch, options.input_shapes, nullptr, &fit});
  for (const auto& [scope, activity] : fit.activities) fit.add_loss(activity);
  // Shares add up to 1: what does not depend on samples counts once.
  Value total = fit.penalty && fit.is_part ? fit.penalty * fit.share : fit.penalty;
  out.share = id_or_none(fit.share);
  for (size_t i = 0; i < outputs; ++i) {
    const std::string& name = model.output_names()[i];
    const Signal& prediction = fit.outputs[i];
    const Value target = graph.input("target " + name, options.targets[i]);
    Value weight;
    if (!options.sample_weights.empty()) weight = graph.input("weight " + name, {DType::f32, options.sample_weights[i]});
    out.predictions.push_back(prediction.value.id());
    out.targets.push_back(target.id());
    out.weights.push_back(id_or_none(weight));
    out.masks.push_back(id_or_none(prediction.mask));
    out.losses.push_back(-1);
    if (options.losses[i].name.empty()) continue;
    Value own = loss(options.losses[i], {target, prediction.value, weight, prediction.mask, fit.is_part ? &fit : nullptr});
    out.losses.back() = own.id();
    if (!options.loss_weights.empty()) own = own * options.loss_weights[i];
    total = total ? own + total : own;
  }
  if (!total) fail<InvalidArgument>("fit", "the model '{}' has no loss to train by", model.name());
  out.loss = total.id();
  for (const Variable* variable : trained) {
    const auto found = fit.parameters.find(variable);
    if (found == fit.parameters.end()) continue;  // no path leads through its layer
    const auto constraint = fit.constraints.find(variable);
    out.trained.push_back({variable, found->second.id(), constraint == fit.constraints.end() ? Json() : constraint->second});
  }
  for (const auto& [variable, next] : fit.updates) out.statistics.push_back({variable, fit.parameters.at(variable).id(), next.id()});
  return out;
}

}  // namespace tutti::keras
