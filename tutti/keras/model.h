// A Keras model as read from a file: its config, its weights, and what it takes and gives. lower() makes graphs of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/graph/graph.h"
#include "tutti/keras/lower.h"
#include "tutti/keras/model_inputs.h"

namespace tutti::keras {

struct LowerOptions {
  int64_t batch = 1;
  // Shapes of the inputs, batch included, where the model leaves extents open; empty when it leaves none.
  std::vector<Shape> input_shapes = {};
  std::vector<LayerTrace>* trace = nullptr;
};

class Model {
 public:
  std::string name() const;
  const std::string& keras_version() const { return keras_version_; }
  const std::vector<ModelInput>& inputs() const { return inputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  // Everything in the file that is refused or broken, one line each; a model with problems can be looked at but not lowered.
  const std::vector<std::string>& problems() const { return problems_; }
  const Json& config() const { return config_; }                  // the serialized model
  const Json& compile_config() const { return compile_config_; }  // null when it was not compiled
  const Scope& variables() const { return *variables_; }
  // The optimizer's variables in Keras's order, read from the file when asked for.
  std::vector<Tensor> optimizer_variables() const;

  // An extent that fits wherever the model leaves one open: what inspect shows shapes and costs for.
  int64_t probe_extent() const { return probe_extent_; }

  // The inputs' types at a batch size; throws InvalidArgument when an open extent is not given.
  std::vector<Type> input_types(const LowerOptions& options) const;
  // One graph from inputs to outputs, weights inside. Throws InvalidArgument when shapes do not fit, or the problems when there are any.
  Graph lower(const LowerOptions& options) const;
  // Lowers what can be, problems or not, every open extent being `extent`; `layers` says what became of each layer. To look at, not to run.
  Graph walk(int64_t batch, int64_t extent, std::vector<LayerTrace>& layers) const;

 private:
  friend class ModelReader;
  std::vector<Type> resolve_inputs(const LowerOptions& options, std::optional<int64_t> unknown_extent) const;
  void lower_types(Graph& graph, const std::vector<Type>& types, const LowerOptions& options, int64_t unknown_extent,
                   std::vector<std::string>* problems) const;
  void declare();  // finds variables and problems by lowering once

  Json config_, compile_config_;
  std::string keras_version_;
  FileFacts file_;
  int64_t probe_extent_ = 1;
  std::vector<ModelInput> inputs_;
  std::vector<std::string> output_names_;
  std::vector<std::string> problems_;
  std::unique_ptr<Scope> variables_ = std::make_unique<Scope>();
  std::function<std::vector<Tensor>()> read_optimizer_;
};

// Opens a .keras or .h5 / .hdf5 file, told apart by their first bytes. Broken files throw InvalidModel; refused layers and options are the
// model's problems().
Model load(const std::string& path);
// The same from bytes in memory.
Model load(std::shared_ptr<const ByteSource> file);
// A serialized model without its weights: what load() checks before it binds any. Variables have no values.
Model from_config(Json config, const std::string& keras_version);

}  // namespace tutti::keras
