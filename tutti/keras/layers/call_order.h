// The order in which Keras runs the calls of a Functional model. Mostly any order would do in which calls find their inputs; it shows where
// layers take masks off tensors that others use too (MultiHeadAttention).
#pragma once

#include <cstddef>
#include <vector>

namespace tutti::keras {

struct OrderedCall {
  std::vector<size_t> parents;  // the calls that its tensors come from, in the order of its arguments
  size_t layer = 0;             // calls of one layer share it
};

// A rank for each call, the first to run being 0. `outputs` are the calls that the model's outputs come from; calls that no output needs
// come last. In a graph with a circle some order or other.
std::vector<size_t> call_ranks(const std::vector<OrderedCall>& calls, const std::vector<size_t>& outputs);

}  // namespace tutti::keras
