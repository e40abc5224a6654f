// What a serialized model says of its inputs and outputs, before anything is lowered.
#pragma once

#include <string>
#include <vector>

#include "tutti/base/dtype.h"
#include "tutti/base/json.h"
#include "tutti/base/shape.h"

namespace tutti::keras {

struct ModelInput {
  std::string name;
  DType dtype = DType::f32;
  Ints shape;  // batch included; -1 where only the data know
};

// Whether an extent beside the batch is open.
bool has_open_extents(const ModelInput& input);
bool has_open_extents(const std::vector<ModelInput>& inputs);

// Of a serialized InputLayer.
ModelInput input_of_layer(const Json& input_layer);
// The leaves of input_layers / output_layers: one reference, a list or an object of them (by sorted key, as Keras flattens).
std::vector<const Json*> flatten_structure(const Json& structure);
// Of a serialized Sequential or Functional model, in Keras's order. Throws InvalidModel when it was saved before it was built.
std::vector<ModelInput> model_inputs(const Json& model);
// Keras's output_names, made unique.
std::vector<std::string> model_output_names(const Json& model);
// What targets, losses and metrics of the outputs go by: the keys of a dictionary of outputs, else output_names.
std::vector<std::string> model_target_names(const Json& model);

}  // namespace tutti::keras
