// The whole step of training as one graph: forward, loss, gradients, the optimizer's update; and its evaluation without the latter two.
#pragma once

#include "tutti/keras/fit/metrics.h"
#include "tutti/keras/fit/optimizers.h"
#include "tutti/keras/fit/training.h"

namespace tutti {

// Metrics as written in configs, by output of the model.
struct MetricLists {
  std::vector<std::vector<Json>> plain, weighted;  // without and with the weights of samples
};

struct StepGraph {
  Graph graph;
  std::vector<keras::Metric> metrics;  // in the order of the graph's outputs behind the loss: losses of outputs, then those asked for
  std::vector<std::string> names;      // of the metrics, as Keras logs them
  std::vector<Shape> predictions;      // of the model's outputs: [batch, ...]
};

// States are named by the model's variables and "optimizer/0", ...; updates change them. Inputs as in keras::TrainingGraph; outputs are
// "loss", that of the batch before the update, and each metric's sums. `initial`: values of the optimizer's variables, or none. Of a part,
// gradients and statistics meet those of the other replicas in all_reduce nodes (transform/replicate.h).
StepGraph train_step(const keras::Model& model, const keras::TrainingOptions& options, const keras::Optimizer& optimizer,
                     const MetricLists& metrics = {}, const std::vector<Tensor>& initial = {});
// Of a part of a batch, options.is_part, in two graphs that share states: what each part computes, and once all parts' sums are there, what
// becomes of the states. Behind the outputs of train_step, `part` has the gradients and the statistics' shares, which are added up over the
// parts and are the inputs of `update`, in that order.
struct SplitStep {
  StepGraph part;
  Graph update;
};
SplitStep split_train_step(const keras::Model& model, const keras::TrainingOptions& options, const keras::Optimizer& optimizer,
                           const MetricLists& metrics, const std::vector<Tensor>& initial);
// With options.training false.
StepGraph evaluation_step(const keras::Model& model, const keras::TrainingOptions& options, const MetricLists& metrics = {});

std::string optimizer_state(size_t index);  // its name

}  // namespace tutti
