// Activation functions: by name, as Dense(activation="gelu") and the Activation layer use them, and as functions for layers and operations.
#pragma once

#include <optional>

#include "tutti/keras/layer.h"

namespace tutti::keras {

// `activation` is null (linear), a name, a serialized function or a serialized layer, as configs hold it; throws Unsupported for anything
// else. hard_sigmoid follows the file's Keras version. `key` is the attribute that holds a serialized layer in Keras.
Value activate(Call& c, const Json& activation, Value x, const std::string& key = "activation");

Value relu(Value x);
Value relu(Value x, double negative_slope, std::optional<double> max_value, double threshold);
Value leaky_relu(Value x, double negative_slope = 0.2);
Value relu6(Value x);
Value elu(Value x, double alpha = 1);
Value selu(Value x);
Value celu(Value x, double alpha = 1);
Value gelu(Value x, bool approximate = false);
Value glu(Value x, int64_t axis = -1);  // half the extent along the axis
Value silu(Value x);
Value hard_silu(Value x);
Value hard_sigmoid(Value x);         // Keras 3: relu6(x + 3) / 6
Value hard_sigmoid_keras2(Value x);  // clip(0.2 x + 0.5, 0, 1)
Value hard_tanh(Value x);
Value hard_shrink(Value x, double threshold = 0.5);
Value soft_shrink(Value x, double threshold = 0.5);
Value tanh_shrink(Value x);
Value softplus(Value x);
Value softsign(Value x);
Value log_sigmoid(Value x);
Value squareplus(Value x, double b = 4);
Value sparse_plus(Value x);
Value sparse_sigmoid(Value x);
Value sparsemax(Value x, int64_t axis = -1);
Value mish(Value x);
Value threshold(Value x, double limit, double otherwise);

}  // namespace tutti::keras
