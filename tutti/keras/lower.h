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
  int keras_major = 3;  // 2 (tf.keras, tf-keras) or 3
  // Files of a .keras archive by their path under assets/: "layers/integer_lookup/vocabulary.txt".
  std::map<std::string, std::string> assets = {};
  bool merges_lora = true;  // .keras: kernels are written with their factors added
};

// What training adds to lowering: weights are states, and layers draw random numbers, update statistics and add to the loss.
struct Fit {
  bool training = true;               // false: evaluation between epochs
  std::set<const Variable*> trained;  // gets gradients
  // One of several parts of a batch, computed side by side or one after another. A part's results are its share of the whole batch's, to be
  // added up. `replicas` of them run at the same time and may ask each other for sums; 1: alone.
  bool is_part = false, accumulates = false;  // accumulates: one after another, too
  bool synchronizes = false;                  // batch normalization by the whole batch
  int64_t replicas = 1;
  Value seed, step;    // u64 scalars: of the run, and counting its steps
  Value share, first;  // of a part: f32, its samples over all samples; u64, the place of its first sample in the batch
  // Of a part that has samples of its own the value; of one that has none, and computes with another's, 0.
  Value counted(Value own) const;
  // The sum over the parts of a value that depends on their samples: what the whole batch would have. Throws Unsupported, naming `what`,
  // where parts come one after another.
  Value over_parts(Value own, const std::string& what) const;
  // Filled by lowering.
  uint64_t streams = 0;                                    // of random numbers
  std::vector<std::pair<const Variable*, Value>> updates;  // statistics and their next values
  std::map<const Variable*, Value> parameters;             // states of the graph
  std::map<const Variable*, Json> constraints;             // serialized
  std::set<const Variable*> regularized;
  Value penalty;                                           // f32 scalar: what regularizers of weights add to the loss; absent: nothing
  std::vector<std::pair<const Scope*, Value>> activities;  // f32 scalars: what layers' outputs add to it
  std::vector<Signal> outputs;                             // the model's, with their masks
  void add_loss(Value value);
  void forget_activities(const Scope& scope);  // of the layer and those in it
  Value* update_of(const Variable& variable);  // nullptr: none yet
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
  // Set when a step of training is lowered.
  Fit* fit = nullptr;

  // Runs a serialized layer or operation: {"module", "class_name", "config", ...}.
  Outputs run(const Json& layer, Scope& scope, const Arguments& arguments);
  // The call of a serialized layer that another layer runs its own way (RNN its cell), options checked.
  Call open(const Json& layer, Scope& scope, const Arguments& arguments);
  // The scope of a layer inside of another: its own, or that of the same layer elsewhere, where a .keras file says that it is shared.
  Scope& scope_of(const Json& layer, Scope& parent, const std::string& key);
  // The graph's parameter for a variable, made once.
  Value parameter(Variable& variable);
  // From now on `value` is seen in the variable's place; gradients flow through it to the variable.
  void see_instead(Variable& variable, Value value) { parameters_[&variable] = value; }

 private:
  Call open(const FoundRow& found, const Config& config, Scope& scope, const Arguments& arguments);
  Outputs run(const FoundRow& found, const Config& config, Scope& scope, const Arguments& arguments);
  int depth_ = 0;
  std::map<const Variable*, Value> parameters_;
  std::map<int64_t, Scope*> shared_;
};

// Whether a layer of a Functional model is called in the way of Keras 3: each call an object, where older files have lists of tensors.
bool has_calls_of_keras3(const Json& layer);
// Whether a serialized object is an operation of keras.ops, which holds no variables and is not numbered among the layers.
bool is_operation(const Json& layer);
// The row for a serialized object; throws Unsupported for custom objects, refused layers and unknown names.
FoundRow resolve(const Json& layer);
// The name a serialized layer goes by: its own "name", else its config's.
std::string layer_name(const Json& layer);
// Keras's path element for a class name: "MultiHeadAttention" -> "multi_head_attention".
std::string to_snake_case(std::string_view class_name);

}  // namespace tutti::keras
