// Writes models as .keras files, which Keras opens.
#pragma once

#include "tutti/keras/model.h"

namespace tutti::keras {

// The model's config and weights; whole or not at all. Throws Unsupported for what a .keras file of today cannot hold.
void write_model(const std::string& path, const Model& model);

// An ensemble as layers: members as nested models, then Keras's own merging layers.
enum class MergeLayer { average, minimum, maximum, add };

struct EnsembleFile {
  struct Member {
    std::string name;  // made unique
    const Model* model;
    std::vector<size_t> inputs;  // which of ours each of its inputs is
  };
  struct Output {
    std::string name;
    MergeLayer layer;
  };
  std::vector<ModelInput> inputs;
  std::vector<Member> members;
  std::vector<Output> outputs;  // for each output of the members
  std::vector<double> weights;  // of average; none: all alike
};
void write_ensemble(const std::string& path, const EnsembleFile& ensemble);

}  // namespace tutti::keras
