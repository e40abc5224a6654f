// A training case of cases.py: its model before the first step, its data, and the graph of a step.
#pragma once

#include <filesystem>

#include "tests/keras/case_files.h"
#include "tutti/run/train_step.h"

namespace tutti {

struct FitCase {
  explicit FitCase(const std::filesystem::path& folder)
      : facts(read_json(folder / "case.json")),
        model(keras::load(folder / "start.keras")),
        optimizer(keras::read_named(model.compile_config().at("optimizer"), "optimizer"), Json()) {
    const NpzReader data(folder / "data.npz");
    x = numbered_arrays(data, "x");
    y = numbered_arrays(data, "y");
    w = numbered_arrays(data, "w");
    const Json* own = facts.find("loss");
    const Json& losses = own != nullptr ? *own : model.compile_config().at("loss");
    for (size_t i = 0; i < model.output_names().size(); ++i)
      options.losses.push_back(keras::read_named(losses.is_list() ? losses[i] : losses, "loss"));
    if (const Json* weights = model.compile_config().find("loss_weights"); weights != nullptr && weights->is_list())
      for (const Json& weight : weights->items()) options.loss_weights.push_back(weight.as_number());
  }

  Graph step_graph(int64_t batch) {
    const auto of_batch = [&](const Tensor& all) {
      Ints extents = all.shape().extents();
      extents[0] = batch;
      return Type{all.dtype(), extents};
    };
    options.batch = batch;
    options.input_shapes.clear();
    options.targets.clear();
    options.sample_weights.clear();
    for (const Tensor& input : x) options.input_shapes.push_back(of_batch(input).shape);
    for (const Tensor& target : y) options.targets.push_back(of_batch(target));
    for (const Tensor& weight : w) options.sample_weights.push_back(of_batch(weight).shape);
    return train_step(model, options, optimizer).graph;
  }

  Json facts;
  keras::Model model;
  keras::Optimizer optimizer;
  keras::TrainingOptions options;
  std::vector<Tensor> x, y, w;  // all samples: inputs, targets, weights of samples
};

}  // namespace tutti
