// An ensemble as one model of Keras's own layers, where Keras has them: what a .keras file holds, and what fit trains.
#pragma once

#include "tutti/keras/model.h"
#include "tutti/run/ensemble.h"

namespace tutti {

// Throws Unsupported naming what Keras has no layer for.
void require_layers(const EnsembleOptions& options);
keras::Model as_keras_model(const Ensemble& ensemble);

// A .keras or .h5 file, or an ensemble's manifest: as one model that can be trained.
keras::Model load_trainable(const std::string& path);

}  // namespace tutti
