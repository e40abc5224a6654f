// Models of Keras 2 that go on as models of Keras 3.
#pragma once

#include <string>
#include <vector>

#include "tutti/keras/model.h"

namespace tutti::keras {

// A model of a file of Keras 2 as Keras 3 would read it: the same layers and weights, by today's rules, with configs that today's classes
// take; not what it was compiled with. Slashes in the names of layers become underscores. Throws Unsupported where that cannot be.
Model as_keras3(const Model& model);

// Classes of its layers that Keras 3 does not have: this program opens such a model, Keras does not.
std::vector<std::string> classes_without_keras3(const Model& model);

// Whether a layer of the model has the activation.
bool has_activation(const Model& model, std::string_view name);

}  // namespace tutti::keras
