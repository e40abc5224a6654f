// Layers that Keras defines beside the architectures of keras.applications.
#include "tutti/keras/layers/families.h"

namespace tutti::keras {

namespace {

// ConvNeXt
Outputs layer_scale(Call& c) { return c.x() * c.weight("gamma", {c.config.integer("projection_dim")}); }

Outputs stochastic_depth(Call& c) { return c.x(); }

// InceptionResNetV2
Outputs custom_scale(Call& c) { return c.x(0) + c.x(1) * c.config.number("scale"); }

}  // namespace

Rows application_layers() {
  static const LayerRow rows[] = {
      {"LayerScale", layer_scale, Masking::drop, "init_values projection_dim", "of ConvNeXt"},
      {"StochasticDepth", stochastic_depth, Masking::drop, "drop_path_rate", "of ConvNeXt"},
      {"CustomScaleLayer", custom_scale, Masking::drop, "scale", "of InceptionResNetV2"},
      {"Custom>CustomScaleLayer", custom_scale, Masking::drop, "scale", "its name in files of Keras 2"},
  };
  return rows;
}

}  // namespace tutti::keras
