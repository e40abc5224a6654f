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

void Scope::collect(std::vector<std::pair<Variable*, bool>>& out, bool trainable) const {
  trainable = trainable && trainable_;
  for (const auto& variable : variables_)
    if (!variable->repeats) out.emplace_back(variable.get(), trainable && variable->trainable);
  for (const auto& child : children_) child->collect(out, trainable);
}

std::vector<Variable*> Scope::flatten(bool legacy_order) const {
  std::vector<std::pair<Variable*, bool>> all;
  collect(all, true);
  if (legacy_order) std::stable_partition(all.begin(), all.end(), [](const auto& item) { return item.second; });
  std::vector<Variable*> out;
  for (const auto& item : all) out.push_back(item.first);
  return out;
}

}  // namespace tutti::keras
