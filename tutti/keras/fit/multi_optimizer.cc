// MultiOptimizer: several optimizers, each for the weights whose paths fit its pattern.
#include "tutti/base/error.h"
#include "tutti/graph/build.h"
#include "tutti/keras/fit/optimizers.h"

namespace tutti::keras {

namespace {

constexpr std::string_view anything = ".*";

// Keras takes patterns for regular expressions; one from a file could take any time. Here ".*" stands for any text, "\\." for a dot.
void check_pattern(const Config& c, const std::string& pattern) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.compare(i, 2, anything) == 0 || pattern.compare(i, 2, "\\.") == 0)
      ++i;
    else if (std::string_view("\\^$|?*+()[]{}").find(pattern[i]) != std::string_view::npos)
      fail<Unsupported>("fit", "{}: of patterns only '.*' is done; got '{}'", c.where(), escape(pattern, 60));
  }
}

// Whether all of the text fits. What lies between two ".*" is taken where it is first found: nothing later can need an earlier place.
bool fits(std::string_view pattern, std::string_view text) {
  const auto begins = [](std::string_view& piece, std::string_view& rest) {  // takes one character of both
    const bool escaped = piece.starts_with("\\.");
    const char wanted = escaped ? '.' : piece[0];
    if (rest.empty() || (rest[0] != wanted && (escaped || wanted != '.'))) return false;
    piece.remove_prefix(escaped ? 2 : 1);
    rest.remove_prefix(1);
    return true;
  };
  const auto piece_fits = [&](std::string_view piece, std::string_view& rest) {
    while (!piece.empty())
      if (!begins(piece, rest)) return false;
    return true;
  };
  size_t star = pattern.find(anything);
  std::string_view rest = text;
  if (!piece_fits(pattern.substr(0, star), rest)) return false;
  if (star == std::string_view::npos) return rest.empty();
  for (;;) {
    pattern.remove_prefix(star + anything.size());
    star = pattern.find(anything);
    const std::string_view piece = pattern.substr(0, star);
    const bool is_last = star == std::string_view::npos;
    for (;; rest.remove_prefix(1)) {
      std::string_view behind = rest;
      if (piece_fits(piece, behind) && (!is_last || behind.empty())) {
        rest = behind;
        break;
      }
      if (rest.empty()) return false;
    }
    if (is_last) return true;
  }
}

}  // namespace

std::vector<Optimizer::Part> Optimizer::read_parts(const Named& named, const Json& schedule) {
  std::vector<Part> out;
  if (plain_name(named.name) != "multioptimizer") return out;
  check_arguments(named, "optimizer_map loss_scale_factor(,)");
  const Config c = named.config();
  if (!schedule.is_null()) c.invalid("has no learning rate of its own for a 'schedule'; hint: one in each optimizer's 'learning_rate'");
  const Json* map = &c.get("optimizer_map");
  if (map->is_object() && map->has("config")) map = &map->at("config");  // as Keras serializes it
  if (!map->is_object() || !map->has("default_optimizer"))
    c.invalid(
        "has an 'optimizer_map' with a 'default_optimizer'; hint: optimizer_map = {{ default_optimizer = \"sgd\", optimizer_map = {{ "
        "\"head/.*\" = \"adam\" }} }}");
  const auto add = [&](const std::string& pattern, const Json& optimizer) {
    Named inner = read_named(optimizer, named.what);
    if (const std::string name = plain_name(inner.name); name == "multioptimizer" || name == "lossscaleoptimizer")
      c.invalid("one of its optimizers is {}, which Keras does not take", inner.name);
    if (inner.config().flag("use_ema", false)) c.unsupported("'use_ema' of one of several optimizers is not done");
    inner.arguments.set("loss_scale_factor", c.get("loss_scale_factor"));
    check_pattern(c, pattern);
    out.push_back({pattern, Optimizer(std::move(inner), Json())});
  };
  if (const Json* patterns = map->find("optimizer_map"); patterns != nullptr && patterns->is_object())
    for (const auto& [pattern, optimizer] : patterns->members()) add(pattern, optimizer);
  add("", map->at("default_optimizer"));
  return out;
}

Json Optimizer::config_of_parts() const {
  Json map = Json::object();
  for (size_t i = 0; i + 1 < parts_.size(); ++i) map.set(parts_[i].pattern, parts_[i].optimizer.config());
  const Json inner = JsonMembers{{"default_optimizer", parts_.back().optimizer.config()}, {"optimizer_map", map}};
  const Json serialized =
      JsonMembers{{"module", "keras.optimizers"}, {"class_name", "OptimizerMap"}, {"config", inner}, {"registered_name", nullptr}};
  return JsonMembers{{"module", "keras.optimizers"},
                     {"class_name", "MultiOptimizer"},
                     {"config", JsonMembers{{"optimizer_map", serialized},
                                            {"loss_scale_factor", named_.config().get("loss_scale_factor")},
                                            {"name", "multi_optimizer"}}},
                     {"registered_name", nullptr}};
}

std::vector<std::vector<size_t>> Optimizer::weights_of_parts(const std::vector<TrainedWeight>& weights) const {
  std::vector<std::vector<size_t>> out(parts_.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string path = root_.empty() ? weights[i].path : root_ + "/" + weights[i].path;
    size_t chosen = parts_.size() - 1;
    bool exact = false, found = false;
    for (size_t p = 0; p + 1 < parts_.size() && !exact; ++p) {
      exact = parts_[p].pattern == path;
      if (!exact && !fits(parts_[p].pattern, path)) continue;
      if (found && !exact)
        fail<InvalidArgument>("fit", "{}: both '{}' and '{}' fit '{}'", named_.config().where(), escape(parts_[chosen].pattern, 60),
                              escape(parts_[p].pattern, 60), escape(path, 60));
      found = true;
      chosen = p;
    }
    out[chosen].push_back(i);
  }
  return out;
}

std::vector<OptimizerVariable> Optimizer::variables_of_parts(const std::vector<TrainedWeight>& weights) const {
  std::vector<OptimizerVariable> out{{"iteration", Tensor::scalar<int64_t>(0)}, {"learning_rate of none", Tensor::scalar<float>(0)}};
  const auto mine = weights_of_parts(weights);
  for (size_t p = 0; p < parts_.size(); ++p) {
    std::vector<TrainedWeight> own;
    for (size_t i : mine[p]) own.push_back(weights[i]);
    for (OptimizerVariable& variable : parts_[p].optimizer.variables(own)) out.push_back(std::move(variable));
  }
  return out;
}

std::vector<Value> Optimizer::apply_parts(std::vector<TrainedWeight>& weights, const std::vector<Value>& variables,
                                          const std::function<Value(size_t weight, Value next)>& constrain) const {
  std::vector<Value> next{variables[0] + 1, variables[1]};
  const auto mine = weights_of_parts(weights);
  for (size_t p = 0; p < parts_.size(); ++p) {
    std::vector<TrainedWeight> own;
    for (size_t i : mine[p]) own.push_back(weights[i]);
    const auto first = variables.begin() + std::ssize(next);
    const std::vector<Value> before(first, first + std::ssize(parts_[p].optimizer.variables(own)));
    if (own.empty()) {  // it never steps
      next.insert(next.end(), before.begin(), before.end());
      continue;
    }
    const auto after = parts_[p].optimizer.apply(own, before, [&](size_t i, Value value) { return constrain(mine[p][i], value); });
    next.insert(next.end(), after.begin(), after.end());
    for (size_t i = 0; i < own.size(); ++i) weights[mine[p][i]].next = own[i].next;
  }
  return next;
}

}  // namespace tutti::keras
