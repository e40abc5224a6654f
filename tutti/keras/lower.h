// Lowering: runs layer functions one after another into one graph, keeping the variables' scopes, the nesting and, when asked, a trace.
#pragma once

#include <map>
#include <set>

#include "tutti/base/error.h"
#include "tutti/keras/layer.h"

namespace tutti::keras {

// One layer as it was lowered, in order of execution; nested layers follow their parent.
struct LayerTrace {
  std::string name, class_name;
  int depth = 0;
  std::vector<Type> outputs;
  size_t first_node = 0, end_node = 0;  // of the graph
  const Scope* scope = nullptr;
};

// A failure that was put on the list of problems already; whoever depends on it goes without.
class Reported : public Error {
  using Error::Error;
};

// What layers have to know of the file they come from.
struct FileFacts {
  int keras_major = 3;         // 2 (tf.keras, tf-keras) or 3
  bool lora_is_merged = true;  // as .keras files are written; .h5 files keep its factors
  // Files of a .keras archive by their path under assets/: "layers/integer_lookup/vocabulary.txt".
  std::map<std::string, std::string> assets = {};
};

class Lowering {
 public:
  Lowering(Graph& graph_, const FileFacts& file_) : graph(graph_), file(file_), keras_major(file_.keras_major) {}

  Graph& graph;
  const FileFacts& file;
  const int keras_major;
  // When set, models go on after a layer that fails and put every problem here; lowering then ends with Reported.
  std::vector<std::string>* problems = nullptr;
  std::vector<LayerTrace>* trace = nullptr;
  // Stands for extents that only the data know, while the model is being checked.
  int64_t batch = 1, unknown_extent = 1;
  // Values whose Keras mask a layer has taken off (MultiHeadAttention does): calls that come later see none.
  std::set<ValueId> unmasked;

  // Set while a layer or model that was called with training=True runs; its sublayers inherit it. Keras 2 only: in Keras 3 predict
  // overrides what a call says.
  bool training = false;

  // Runs a serialized layer or operation: {"module", "class_name", "config", ...}.
  Outputs run(const Json& layer, Scope& scope, const Arguments& arguments);
  // The call of a serialized layer that another layer runs its own way (RNN its cell), options checked.
  Call open(const Json& layer, Scope& scope, const Arguments& arguments);
  // The graph's parameter for a variable, made once.
  Value parameter(Variable& variable);

 private:
  Call open(const FoundRow& found, const Config& config, Scope& scope, const Arguments& arguments);
  Outputs run(const FoundRow& found, const Config& config, Scope& scope, const Arguments& arguments);
  int depth_ = 0;
  std::map<const Variable*, Value> parameters_;
};

// Whether a serialized object is an operation of keras.ops, which holds no variables and is not numbered among the layers.
bool is_operation(const Json& layer);
// The row for a serialized object; throws Unsupported for custom objects, refused layers and unknown names.
FoundRow resolve(const Json& layer);
// The name a serialized layer goes by: its own "name", else its config's.
std::string layer_name(const Json& layer);
// Keras's path element for a class name: "MultiHeadAttention" -> "multi_head_attention".
std::string to_snake_case(std::string_view class_name);

}  // namespace tutti::keras
