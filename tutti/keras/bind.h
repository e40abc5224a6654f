// Gives a model's variables their values from a file: by path, as in the model.weights.h5 of a .keras archive, or by order, as in .h5
// files.
#pragma once

#include "tutti/keras/hdf5.h"
#include "tutti/keras/weights.h"

namespace tutti::keras {

// What has no value, or one of another shape, becomes a problem.
void bind_by_path(Scope& model, const Hdf5File& file, int keras_major, std::vector<std::string>& problems);
void bind_by_order(Scope& model, const Hdf5File& file, int keras_major, std::vector<std::string>& problems);

// The names in an attribute that Keras splits in chunks (name0, name1, ...) when it is long.
std::vector<std::string> chunked_strings(const Hdf5File& file, const std::string& object, const std::string& attribute);

}  // namespace tutti::keras
