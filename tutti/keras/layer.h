// What a Keras layer is here: a row of the layer table and one function from config, weights and inputs to values. The function runs each
// time the layer is lowered into a graph, and asking for a weight declares it, so there is no second list of weights anywhere.
//
//   Outputs dense(Call& c) {
//     Value x = c.x();                                                        // [batch, ..., in]
//     Value kernel = c.weight("kernel", {x.extent(-1), c.config.integer("units")});
//     ...
//     return activate(c, c.config.get("activation"), y);
//   }
//
// Weights are asked for in the order of Keras's own build (trainable before not), sublayers in the order in which Keras creates them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tutti/graph/build.h"
#include "tutti/keras/config.h"
#include "tutti/keras/weights.h"

namespace tutti::keras {

class Lowering;

// A value between layers with its Keras mask (bool, [batch, time]); most have none.
struct Signal {
  Value value;
  Value mask;
};

// What a layer or operation is called with: tensors and constants, nested as in the file.
struct Argument {
  enum class Kind { constant, tensor, list, object };
  Kind kind = Kind::constant;
  Json constant;                  // Kind::constant, null included; {"class_name": "__slice__", ...} stays as it is
  Signal tensor;                  // Kind::tensor
  int64_t written_rows = 0;       // Kind::tensor: its extent along the first axis in the file, where the file fixes the batch; else 0
  std::vector<Argument> items;    // list and object
  std::vector<std::string> keys;  // object
  mutable bool asked_for = false;

  Argument() = default;
  Argument(Json value) : constant(std::move(value)) {}
  Argument(Signal value) : kind(Kind::tensor), tensor(value) {}
  Argument(std::vector<Argument> list) : kind(Kind::list), items(std::move(list)) {}
  bool is_null() const { return kind == Kind::constant && constant.is_null(); }
  // Every tensor below, lists in order, objects by sorted key (as Keras flattens them).
  std::vector<Signal> tensors() const;
};

// Asking for an argument says that it is honoured: a call with one that nobody asked for is refused, so there is no second list of them.
struct Arguments {
  std::vector<Argument> positional;
  std::vector<std::pair<std::string, Argument>> named;
  // By position or by name; nullptr when absent or null.
  const Argument* find(size_t position, std::string_view name) const;
  const Argument* find(std::string_view name) const { return find(positional.size(), name); }
  const Argument* given(size_t position, std::string_view name) const;  // the same, null included
  std::span<const Argument> in_order() const;                           // all positional ones
};

struct Outputs {
  std::vector<Signal> signals;
  Outputs(Value value) : signals{{value, {}}} {}
  Outputs(Signal signal) : signals{signal} {}
  Outputs(std::vector<Signal> several) : signals(std::move(several)) {}
};

class Call {
 public:
  const Config config;
  const Arguments& arguments;
  const Policy policy;
  Graph& graph;
  Lowering& lowering;

  // The tensors of the first argument, floats cast to the compute dtype as Keras casts them.
  size_t input_count() const { return inputs_.size(); }
  Value x(size_t index = 0) const;         // throws InvalidModel when there are fewer
  Value uncast_x(size_t index = 0) const;  // as it came, for layers that Keras marks autocast = False
  Value mask(size_t index = 0) const;      // absent where there is none; an explicit mask= argument wins
  const std::vector<Signal>& inputs() const { return inputs_; }
  // A further tensor argument ("initial_state" is find(...)->tensors()); absent where it is not given. Cast like the inputs.
  Value tensor(size_t position, std::string_view name) const;

  // The layer's next variable, cast to the compute dtype when it is a float and `raw` is false.
  struct WeightOptions {
    bool trainable = true;
    bool raw = false;
    std::optional<DType> dtype = {};  // default: the policy's variable dtype
    std::string_view option = {};     // what its regularizer and constraint are called after in the config; default: its name
    double merge_scale = 0;           // of Variable
  };
  Value weight(const std::string& name, Shape shape, const WeightOptions& options);
  // A variable of a sublayer that this layer holds too (Variable::repeats); it stands before those asked for later.
  void repeat_weight(const std::string& name, const Type& type);
  Value weight(const std::string& name, Shape shape) { return weight(name, std::move(shape), WeightOptions{}); }

  // Runs a layer that is serialized inside this one's config ({"class_name": ..., "config": ...}). `key` is the attribute that holds it in
  // Keras
  // ("layer", "cell", "cells/lstm_cell_1"): its weights' path in the file.
  Outputs child(const std::string& key, const Json& layer, const Arguments& arguments);
  Outputs child(const std::string& key, const Json& layer, std::vector<Signal> inputs);
  // Runs `function` as an inner layer that Keras makes in code and no config mentions (MultiHeadAttention's query_dense).
  Outputs child(const std::string& key, const std::string& name, const Json& config, std::vector<Signal> inputs,
                Outputs (*function)(Call&));

  // While training: random numbers that no other call draws, the next value of a statistic, and what is added to the loss.
  bool draws() const;
  // f32 in [0, 1). by_sample: of each sample of the batch its own; else the same for all.
  Value uniform(const Shape& shape, bool by_sample = true);
  Value normal(const Shape& shape, bool by_sample = true);
  Value latest(const std::string& name);  // of a statistic, which a call before may have assigned
  void assign(const std::string& name, Value next);
  void add_activity(const Json& regularizer, Value output);
  // The activity_regularizer is for the layers inside, not for what comes out of this one.
  void leave_activity_to_parts() { activity_is_of_parts_ = true; }
  bool activity_is_of_parts() const { return activity_is_of_parts_; }

  // The layer's file among the archive's assets; nullptr when there is none.
  const std::string* asset(const std::string& name) const;
  // Whether the layer, or a model around it, is called with training=True, in a file of Keras 2. In Keras 3 predict overrides it.
  bool training() const;

  Call(Config config_, const Arguments& arguments_, Policy policy_, bool autocast, Lowering& lowering_, Scope& scope);
  Scope& scope() { return scope_; }

 private:
  Variable& own(const std::string& name);
  Value key(int64_t elements, bool by_sample);
  void note_options(const Variable& variable, std::string_view option, Value raw);
  Value cast(Value v) const;
  bool autocast_;
  Scope& scope_;
  const Argument* first_ = nullptr;  // what the inputs are the tensors of
  std::vector<Signal> inputs_;
  size_t next_variable_ = 0;
  bool activity_is_of_parts_ = false;
};

using LayerFunction = Outputs (*)(Call&);

// What becomes of the first input's mask: passed on to the first output (Keras's supports_masking), dropped, or the function's own
// business.
enum class Masking { pass, drop, own };

inline constexpr std::string_view usual_call = "training mask";

struct LayerRow {
  std::string_view name;   // Keras's class name
  LayerFunction function;  // nullptr: refused, `note` says why and what to do instead
  Masking masking;
  // Config keys that are honoured, separated by spaces; common ones (name, dtype, initializers, ...) go without saying. "*": none of them
  // changes the result.
  std::string_view options;
  std::string_view note = "";  // for docs/keras_support.md: values that are refused, or why the layer is
  // What call() of Keras 3 takes after its first argument, in its order. Files of Keras 2 name all but the first. Not for operations, which
  // ask by position.
  std::string_view call = usual_call;
  bool mixes_samples = false;  // while training it sees what all samples of a call have in common, or changes with each call
};

std::vector<std::string_view> words(std::string_view list);  // of `options` and `call`

// The families; each file under layers/ ends with its rows. `group` is the heading in docs/keras_support.md.
struct LayerFamily {
  std::string_view group;
  std::span<const LayerRow> rows;
  bool autocast = true;  // Keras casts float inputs to the compute dtype; not for models and operations
};
std::span<const LayerFamily> layer_families();
std::span<const LayerFamily> operation_families();  // keras.ops inside functional models

struct FoundRow {
  const LayerRow* row = nullptr;  // nullptr when the name is unknown
  bool autocast = true;
};
FoundRow find_layer(std::string_view class_name);
FoundRow find_operation(std::string_view class_name);

}  // namespace tutti::keras
