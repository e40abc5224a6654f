// The variables of a model as a tree of scopes that mirrors Keras's objects (layers, cells, inner dense layers), so that both ways of
// finding a weight in a file work: by path (Keras 3) and by order (legacy .h5). Scopes and variables come into being when layers first ask
// for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tutti/base/tensor.h"

namespace tutti::keras {

struct Variable {
  std::string path;  // for people: "bidirectional/forward_lstm/lstm_cell/kernel"
  std::string name;  // "kernel"
  Type type;
  bool trainable = true;
  Tensor value;  // empty until bound
  // A sublayer's variable that its parent holds as well: Keras 3 files store it under both, lists of weights name it once.
  bool repeats = false;
  // One of LoRA's two factors: .keras files have neither, but this many times their product added to the scope's first variable.
  double merge_scale = 0;
  bool is_merged() const { return merge_scale != 0; }
};

class Scope {
 public:
  explicit Scope(std::string path = "", std::string key = "", std::string keys = "")
      : path_(std::move(path)), key_(std::move(key)), keys_(std::move(keys)) {}

  // Finds or makes the child kept under `key` in Keras 3 files ("layers/dense_1", "cell"); `name` is for people. A child is as trainable as
  // its parent until a config says otherwise.
  Scope& child(const std::string& key, const std::string& name);
  // Finds or makes variable number `index`; throws InvalidModel when it exists with another type.
  Variable& variable(size_t index, const std::string& name, const Type& type, bool trainable);
  // Writes nothing when nothing changes: once a model is declared, threads lower it at the same time.
  void set_trainable(bool trainable) {
    if (trainable_ != trainable) trainable_ = trainable;
  }

  const std::string& path() const { return path_; }
  const std::string& key() const { return key_; }
  const std::string& keys() const { return keys_; }  // from the model down: "layers/functional_1/layers/dense"
  bool trainable() const { return trainable_; }
  std::vector<std::unique_ptr<Variable>>& variables() { return variables_; }
  const std::vector<std::unique_ptr<Variable>>& variables() const { return variables_; }
  const std::vector<std::unique_ptr<Scope>>& children() const { return children_; }

  // Every variable below, in the order of Keras's layer.weights.
  std::vector<Variable*> flatten() const;
  // The same as .h5 files hold a layer's weights: trainable ones first, by the rules of that Keras for what is frozen inside what.
  std::vector<Variable*> flatten_for_hdf5(int keras_major) const;

 private:
  void collect(std::vector<std::pair<Variable*, bool>>& out) const;
  void collect_trainable(std::vector<Variable*>& out) const;
  void collect_frozen(std::vector<Variable*>& out) const;
  void collect_all(std::vector<Variable*>& out) const;
  bool is_model() const { return !children_.empty() && children_[0]->key_.starts_with("layers/"); }
  std::string path_, key_, keys_;
  bool trainable_ = true;
  std::vector<std::unique_ptr<Variable>> variables_;
  std::vector<std::unique_ptr<Scope>> children_;
};

}  // namespace tutti::keras
