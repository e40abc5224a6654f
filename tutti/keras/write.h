// Writes models as .keras files, which Keras opens.
#pragma once

#include "tutti/keras/model.h"

namespace tutti::keras {

// What a model was trained with, so that Keras can go on: losses, weights and metrics as configs and job files write them.
struct CompiledWith {
  Json optimizer;  // as Keras serializes it
  Json loss, loss_weights, metrics, weighted_metrics;
  std::vector<Tensor> optimizer_variables;
};

// The model's config and weights, and what it was trained with; whole or not at all. Throws Unsupported for what a .keras file of today
// cannot hold. `durable` as in OutputFile::commit.
void write_model(const std::string& path, const Model& model, const CompiledWith* compiled = nullptr, bool durable = true);

// An ensemble as layers: members as nested models, then Keras's own merging layers.
enum class MergeLayer { average, minimum, maximum, add };

struct EnsembleLayers {
  struct Member {
    std::string name;  // made unique
    const Model* model;
    std::vector<size_t> inputs;   // which of ours each of its inputs is
    std::vector<size_t> outputs;  // which of its outputs is merged first, and so on
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
// One model of them, with copies of the members' weights.
Model ensemble_model(const EnsembleLayers& ensemble);

}  // namespace tutti::keras
