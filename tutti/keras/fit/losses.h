// The losses of keras.losses, as values of a graph.
#pragma once

#include "tutti/graph/graph.h"
#include "tutti/keras/fit/named.h"

namespace tutti::keras {

struct Fit;  // lower.h

// What a loss is computed of. Targets may be of any dtype; both become f32.
struct LossInputs {
  Value target, prediction;  // [batch, ...]
  Value weight;              // of samples [batch, ...], or absent
  Value mask;                // Keras's mask of the prediction, or absent
  // When only a part of the batch is here: the loss is the part's share of that of the whole batch. nullptr: all of it is.
  const Fit* part = nullptr;
};

// One number: values by sample, weighed, masked and reduced as the loss's own `reduction` says. Throws InvalidArgument for unknown names
// and arguments and for shapes that do not fit, Unsupported for what is not done.
Value loss(const Named& named, const LossInputs& inputs);
// Before the reduction: [batch, ...]. `mask` is set by losses that ignore some of their values.
Value loss_values(const Named& named, const LossInputs& inputs, Value& mask);

// "crossentropy" and "ce", which Keras chooses by shapes; other names stay.
bool is_chosen_by_shapes(const Named& named);
Named chosen_by_shapes(Named named, const Shape& target, const Shape& prediction);
// What "accuracy" and "crossentropy" mean: binary, sparse_categorical or categorical.
std::string_view kind_of_classes(const Shape& target, const Shape& prediction);

// Its arguments as Keras takes them.
Json written_loss(const Named& named);

// Whether extents are equal, or 1, from the last on.
bool broadcast_alike(const Shape& a, const Shape& b);
// Makes the ranks of two values equal where one has a last axis of 1 more, as Keras does.
void match_ranks(Value& a, Value& b);

}  // namespace tutti::keras
