// One step of a model's training or evaluation as a graph, up to its loss. What comes after, gradients and the optimizer, is put together
// in run/train_step.h.
#pragma once

#include "tutti/keras/fit/named.h"
#include "tutti/keras/model.h"

namespace tutti::keras {

struct TrainingOptions {
  int64_t batch = 1;
  std::vector<Shape> input_shapes = {};    // batch included, where the model leaves extents open
  std::vector<Type> targets = {};          // by output of the model, batch included
  std::vector<Named> losses = {};          // by output; a name of "" is no loss
  std::vector<double> loss_weights = {};   // by output; empty: 1
  std::vector<Shape> sample_weights = {};  // by output, or empty: f32, batch included
  bool training = true;
  // A part of a batch: results are to be added to those of the other parts. As in Fit (lower.h).
  bool is_part = false, accumulates = false, synchronizes = false;
  int64_t replicas = 1;
};

// Inputs of the graph: the model's, the targets, the sample weights, and for training "seed" and "step" (u64 scalars);
// of a part "share" and "first". It has no outputs.
struct TrainingGraph {
  Graph graph;
  ValueId loss = -1;  // f32 scalar, regularization included
  // By output; losses, weights and masks -1 where there are none.
  std::vector<ValueId> predictions, targets, weights, masks, losses;  // losses before their loss_weights

  struct Trained {
    const Variable* variable;
    ValueId value;
    Json constraint;  // null: none
  };
  std::vector<Trained> trained;  // in Keras's order of trainable variables
  struct Statistic {
    const Variable* variable;
    ValueId value, next;
  };
  std::vector<Statistic> statistics;  // what the step itself changes
  ValueId share = -1;                 // of a part
};

// The variables that training changes, in Keras's order: trainable themselves and in layers that all are.
std::vector<const Variable*> trainable_variables(const Model& model);
TrainingGraph lower_training(const Model& model, const TrainingOptions& options);

}  // namespace tutti::keras
