#include "tutti/keras/weights.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::keras {

namespace {
std::string join(const std::string& a, const std::string& b) { return a.empty() ? b : b.empty() ? a : a + "/" + b; }
}  // namespace

Scope& Scope::child(const std::string& key, const std::string& name) {
  for (auto& child : children_)
    if (child->key_ == key) return *child;
  children_.push_back(std::make_unique<Scope>(join(path_, name), key, join(keys_, key)));
  children_.back()->trainable_ = trainable_;
  return *children_.back();
}

Variable& Scope::variable(size_t index, const std::string& name, const Type& type, bool trainable) {
  if (index > variables_.size()) fail<InternalError>("keras", "{}: variable {} asked for before the ones before it", path_, index);
  if (index == variables_.size()) {
    variables_.push_back(std::make_unique<Variable>(Variable{join(path_, name), name, type, trainable, {}, false}));
  }
  Variable& found = *variables_[index];
  if (!(found.type == type))
    fail<InvalidModel>("keras", "'{}' is used as {} and as {}", found.path, to_string(found.type), to_string(type));
  return found;
}

// Each variable with Keras 3's flag: that of its own layer, whatever is around it.
void Scope::collect(std::vector<std::pair<Variable*, bool>>& out) const {
  for (const auto& variable : variables_)
    if (!variable->repeats) out.emplace_back(variable.get(), trainable_ && variable->trainable);
  for (const auto& child : children_) child->collect(out);
}

// Keras 2: what is inside a frozen layer is frozen.
void Scope::collect_trainable(std::vector<Variable*>& out) const {
  if (!trainable_) return;
  for (const auto& variable : variables_)
    if (variable->trainable && !variable->repeats) out.push_back(variable.get());
  for (const auto& child : children_) child->collect_trainable(out);
}

void Scope::collect_frozen(std::vector<Variable*>& out) const {
  for (const auto& variable : variables_)
    if ((!trainable_ || !variable->trainable) && !variable->repeats) out.push_back(variable.get());
  // A frozen layer has all variables of each child in turn; a frozen model first the trainable ones of all of them.
  if (!trainable_ && is_model())
    for (const auto& child : children_) child->collect_trainable(out);
  for (const auto& child : children_) trainable_ || is_model() ? child->collect_frozen(out) : child->collect_all(out);
}

void Scope::collect_all(std::vector<Variable*>& out) const {
  if (is_model()) {
    for (const auto& child : children_) child->collect_all(out);
    return;
  }
  collect_trainable(out);
  collect_frozen(out);
}

std::vector<Variable*> Scope::flatten() const {
  std::vector<std::pair<Variable*, bool>> all;
  collect(all);
  std::vector<Variable*> out;
  for (const auto& item : all) out.push_back(item.first);
  return out;
}

std::vector<Variable*> Scope::flatten_for_hdf5(int keras_major) const {
  std::vector<Variable*> out;
  if (keras_major < 3) {
    collect_trainable(out);
    collect_frozen(out);
    return out;
  }
  std::vector<std::pair<Variable*, bool>> all;
  collect(all);
  if (trainable_) std::stable_partition(all.begin(), all.end(), [](const auto& item) { return item.second; });
  for (const auto& item : all) out.push_back(item.first);
  return out;
}

}  // namespace tutti::keras
