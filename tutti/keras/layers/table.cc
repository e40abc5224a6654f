// The layer table: the families' rows in the order of docs/keras_support.md. Adding a layer touches its family's file only.
#include "tutti/keras/layers/families.h"

namespace tutti::keras {

std::span<const LayerFamily> layer_families() {
  static const LayerFamily families[] = {
      {"Models", model_layers(), false},
      {"Core", core_layers()},
      {"Activations", activation_layers()},
      {"Merging", merging_layers()},
      {"Reshaping", reshaping_layers()},
      {"Convolution", convolution_layers()},
      {"Pooling", pooling_layers()},
      {"Normalization", normalization_layers()},
      {"Recurrent", recurrent_layers()},
      {"Recurrent convolution", conv_lstm_layers()},
      {"Wrappers", wrapper_layers()},
      {"Attention", attention_layers()},
      {"Regularization", regularization_layers()},
      {"Preprocessing", preprocessing_layers()},
      {"Refused", refused_layers()},
  };
  return families;
}

std::span<const LayerFamily> operation_families() {
  static const LayerFamily families[] = {
      {"Elementwise operations", elementwise_operations(), false},
      {"Array operations", array_operations(), false},
      {"Neural-network operations", nn_operations(), false},
      {"Image and linear-algebra operations", other_operations(), false},
  };
  return families;
}

}  // namespace tutti::keras
