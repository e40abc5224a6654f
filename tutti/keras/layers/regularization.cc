// Layers that do something while training only. Files of Keras 2 that call them with training=True are refused (lower.cc).
#include "tutti/keras/layers/families.h"

namespace tutti::keras {

namespace {

Outputs identity(Call& c) { return c.x(); }

const LayerRow rows[] = {
    {"Dropout", identity, Masking::pass, "rate noise_shape"},
    {"SpatialDropout1D", identity, Masking::pass, "rate noise_shape"},
    {"SpatialDropout2D", identity, Masking::pass, "rate noise_shape data_format"},
    {"SpatialDropout3D", identity, Masking::pass, "rate noise_shape data_format"},
    {"GaussianDropout", identity, Masking::pass, "rate"},
    {"GaussianNoise", identity, Masking::pass, "stddev"},
    {"AlphaDropout", identity, Masking::pass, "rate noise_shape"},
    {"ActivityRegularization", identity, Masking::pass, "l1 l2"},
};

}  // namespace

Rows regularization_layers() { return rows; }

}  // namespace tutti::keras
