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
      {"Recurrent, for cuDNN", cudnn_layers()},
      {"Wrappers", wrapper_layers()},
      {"Attention", attention_layers()},
      {"Regularization", regularization_layers()},
      {"Preprocessing", preprocessing_layers()},
      {"Categories", category_layers()},
      {"Image preprocessing", resizing_layers()},
      {"Image augmentation", augmentation_layers()},
      {"Spectrograms", spectrogram_layers()},
      {"Of keras.applications", application_layers()},
      {"TensorFlow functions in legacy models", tensorflow_layers(), false},
      {"Refused", refused_layers()},
  };
  return families;
}

std::span<const LayerFamily> operation_families() {
  static const LayerFamily families[] = {
      {"Elementwise operations", unary_operations(), false},
      {"Operations on two tensors", binary_operations(), false},
      {"Reductions", reduction_operations(), false},
      {"Order and quantiles", order_operations(), false},
      {"Shapes and axes", shape_operations(), false},
      {"Indexing", index_operations(), false},
      {"Creation", creation_operations(), false},
      {"Products", product_operations(), false},
      {"Neural-network operations", nn_operations(), false},
      {"Convolution, pooling and patches", window_operations(), false},
      {"Images", image_operations(), false},
      {"Signals", signal_operations(), false},
      {"Patterns of axes", rearrange_operations(), false},
      {"Refused operations", refused_operations(), false},
  };
  return families;
}

}  // namespace tutti::keras
