// The rows of each family, defined at the end of the family's file.
#pragma once

#include "tutti/keras/layer.h"

namespace tutti::keras {

using Rows = std::span<const LayerRow>;

constexpr LayerRow refused(std::string_view name, std::string_view why) { return {name, nullptr, Masking::drop, "*", why}; }
inline constexpr std::string_view older_name = "older name";  // a note

Rows model_layers();           // models.cc
Rows core_layers();            // core.cc
Rows activation_layers();      // activation_layers.cc
Rows merging_layers();         // merging.cc
Rows reshaping_layers();       // reshaping.cc
Rows convolution_layers();     // convolution.cc
Rows pooling_layers();         // pooling.cc
Rows normalization_layers();   // normalization.cc
Rows recurrent_layers();       // rnn.cc
Rows conv_lstm_layers();       // conv_lstm.cc
Rows cudnn_layers();           // cudnn_rnn.cc
Rows wrapper_layers();         // wrappers.cc
Rows attention_layers();       // attention.cc
Rows regularization_layers();  // regularization.cc
Rows preprocessing_layers();   // preprocessing.cc
Rows category_layers();        // categories.cc
Rows resizing_layers();        // resizing.cc
Rows augmentation_layers();    // augmentation.cc
Rows spectrogram_layers();     // spectrograms.cc
Rows application_layers();     // applications.cc
Rows refused_layers();         // refused.cc
Rows tensorflow_layers();      // tensorflow/layers.cc

Rows unary_operations();      // operations/unary.cc
Rows binary_operations();     // operations/binary.cc
Rows reduction_operations();  // operations/reductions.cc
Rows order_operations();      // operations/order.cc
Rows shape_operations();      // operations/shapes.cc
Rows index_operations();      // operations/indexing.cc
Rows creation_operations();   // operations/creation.cc
Rows product_operations();    // operations/products.cc
Rows nn_operations();         // operations/nn.cc
Rows window_operations();     // operations/windows.cc
Rows image_operations();      // operations/images.cc
Rows signal_operations();     // operations/signals.cc
Rows rearrange_operations();  // operations/rearrange.cc
Rows refused_operations();    // operations/refused.cc

}  // namespace tutti::keras
