// The learning rate schedules of keras.optimizers.schedules, as values of a graph.
#pragma once

#include "tutti/graph/graph.h"
#include "tutti/keras/fit/named.h"

namespace tutti::keras {

// The learning rate at `step`, an f32 scalar that counts from 0. `initial` stands for an initial_learning_rate that is not among the
// arguments. Throws InvalidArgument for unknown names and arguments.
Value schedule(const Named& named, Value step, double initial);

// Keras's class of that name, and its arguments as Keras takes them.
std::string_view schedule_class(const Named& named);
Json written_schedule(const Named& named);

}  // namespace tutti::keras
