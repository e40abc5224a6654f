// The rows of each family, defined at the end of the family's file.
#pragma once

#include "tutti/keras/layer.h"

namespace tutti::keras {

using Rows = std::span<const LayerRow>;

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
Rows wrapper_layers();         // wrappers.cc
Rows attention_layers();       // attention.cc
Rows regularization_layers();  // regularization.cc
Rows preprocessing_layers();   // preprocessing.cc
Rows refused_layers();         // refused.cc

Rows elementwise_operations();  // operations/elementwise.cc
Rows array_operations();        // operations/arrays.cc
Rows nn_operations();           // operations/nn.cc
Rows other_operations();        // operations/other.cc

}  // namespace tutti::keras
