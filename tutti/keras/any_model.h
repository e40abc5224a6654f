// What a verb is given as MODEL: a Keras model, or several models put together. It has inputs and outputs with names, and becomes a graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/keras/lower.h"
#include "tutti/keras/model_inputs.h"

namespace tutti::keras {

struct LowerOptions {
  int64_t batch = 1;
  // Shapes of the inputs, batch included, where the model leaves extents open; empty when it leaves none.
  std::vector<Shape> input_shapes = {};
  std::vector<LayerTrace>* trace = nullptr;
  Fit* fit = nullptr;  // for a step of training, which Keras models have
};

class AnyModel {
 public:
  virtual ~AnyModel() = default;
  virtual std::string name() const = 0;
  virtual const std::vector<ModelInput>& inputs() const = 0;
  virtual const std::vector<std::string>& output_names() const = 0;
  // Everything that is refused or broken, one line each; a model with problems can be looked at but not lowered.
  virtual const std::vector<std::string>& problems() const = 0;
  // An extent that fits wherever the model leaves one open: what inspect shows shapes and costs for.
  virtual int64_t probe_extent() const = 0;
  // One graph from inputs to outputs, weights inside. Throws InvalidArgument when shapes do not fit, or the problems when there are any.
  virtual Graph lower(const LowerOptions& options) const = 0;

  // The inputs' types at a batch size; throws InvalidArgument for shapes that do not fit, and when an open extent is neither given nor
  // `unknown_extent`.
  std::vector<Type> input_types(const LowerOptions& options, std::optional<int64_t> unknown_extent = {}) const;

 protected:
  void refuse_problems() const;  // throws them all, when there are any
  AnyModel() = default;
  AnyModel(AnyModel&&) = default;
  AnyModel& operator=(AnyModel&&) = default;
};

}  // namespace tutti::keras
