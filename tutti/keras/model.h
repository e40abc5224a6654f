// A Keras model as read from a file: its config, its weights, and what it takes and gives. lower() makes graphs of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/keras/any_model.h"

namespace tutti::keras {

class Model : public AnyModel {
 public:
  std::string name() const override;
  const std::string& keras_version() const { return keras_version_; }
  const std::vector<ModelInput>& inputs() const override { return inputs_; }
  const std::vector<std::string>& output_names() const override { return output_names_; }
  const std::vector<std::string>& target_names() const { return target_names_; }  // model_inputs.h
  const std::vector<std::string>& problems() const override { return problems_; }
  const Json& config() const { return config_; }                  // the serialized model
  const Json& compile_config() const { return compile_config_; }  // null when it was not compiled
  const Scope& variables() const { return *variables_; }
  const std::map<std::string, std::string>& assets() const { return file_.assets; }  // by their path under assets/
  // The optimizer's variables in Keras's order, read from the file when asked for.
  std::vector<Tensor> optimizer_variables() const;

  int64_t probe_extent() const override { return probe_extent_; }

  Graph lower(const LowerOptions& options) const override;
  // The same into an empty graph, with options.fit set: its seed and step become inputs behind the model's, and it gets the outputs.
  void lower_training(Graph& graph, const LowerOptions& options) const;
  // Lowers what can be, problems or not, every open extent being `extent`; `layers` says what became of each layer. To look at, not to run.
  Graph walk(int64_t batch, int64_t extent, std::vector<LayerTrace>& layers) const;

 private:
  friend class ModelReader;
  void lower_types(Graph& graph, const std::vector<Type>& types, const LowerOptions& options, int64_t unknown_extent,
                   std::vector<std::string>* problems) const;
  void declare();  // finds variables and problems by lowering once

  Json config_, compile_config_;
  std::string keras_version_;
  FileFacts file_;
  int64_t probe_extent_ = 1;
  std::vector<ModelInput> inputs_;
  std::vector<std::string> output_names_, target_names_;
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
