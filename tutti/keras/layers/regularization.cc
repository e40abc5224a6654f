// Layers that do something while training only. Files of Keras 2 that call them with training=True are refused (lower.cc).
#include "tutti/keras/layers/families.h"

namespace tutti::keras {

namespace {

Outputs kept(Call& c) { return c.x(); }

}  // namespace

Rows regularization_layers() {
  static const LayerRow rows[] = {
      {"Dropout", kept, Masking::pass, "rate noise_shape"},
      {"SpatialDropout1D", kept, Masking::pass, "rate noise_shape"},
      {"SpatialDropout2D", kept, Masking::pass, "rate noise_shape data_format"},
      {"SpatialDropout3D", kept, Masking::pass, "rate noise_shape data_format"},
      {"GaussianDropout", kept, Masking::pass, "rate"},
      {"GaussianNoise", kept, Masking::pass, "stddev"},
      {"AlphaDropout", kept, Masking::pass, "rate noise_shape"},
      {"ActivityRegularization", kept, Masking::pass, "l1 l2"},
  };
  return rows;
}

}  // namespace tutti::keras
