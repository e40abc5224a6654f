#include "tutti/keras/fit/named.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/keras/layer.h"

namespace tutti::keras {

namespace {

const Json* text_member(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found != nullptr && found->is_string() ? found : nullptr;
}

}  // namespace

Named read_named(const Json& json, std::string what) {
  Named out{std::move(what), "", Json::object()};
  const Json* given = nullptr;
  if (json.is_string()) {
    out.name = json.as_string();
  } else if (json.is_object() && text_member(json, "class_name") != nullptr) {
    out.name = text_member(json, "class_name")->as_string();
    out.of_keras = true;
    given = json.find("config");
    if (out.name == "function" && given != nullptr && given->is_string()) {  // a serialized function
      out.name = given->as_string();
      given = nullptr;
    }
  } else if (json.is_object() && text_member(json, "name") != nullptr) {
    out.name = text_member(json, "name")->as_string();
    given = &json;
  } else {
    std::string hint;
    for (size_t i = 0; json.is_object() && hint.empty() && i < json.size(); ++i) hint = did_you_mean(json.members()[i].first, {"name"});
    fail<InvalidArgument>("fit", "{} is a name, or a table with a name and arguments; got {}{}", out.what, escape(json.dump(), 80),
                          json.is_object() && hint.empty() ? ", which has no 'name'" : hint);
  }
  if (given != nullptr && !given->is_object())
    fail<InvalidArgument>("fit", "{} '{}': its arguments are a table; got {}", out.what, out.name, escape(given->dump(), 80));
  if (given != nullptr)
    for (const auto& [key, value] : given->members())
      if (key != "name") out.arguments.set(key, value);
  return out;
}

std::string plain_name(std::string_view name) {
  std::string out;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string class_of_name(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> odd[] = {
      {"auc", "AUC"},
      {"kl_divergence", "KLDivergence"},
      {"ctc", "CTC"},
      {"mse", "MeanSquaredError"},
      {"mae", "MeanAbsoluteError"},
      {"mape", "MeanAbsolutePercentageError"},
      {"msle", "MeanSquaredLogarithmicError"},
      {"bce", "BinaryCrossentropy"},
      {"rmse", "RootMeanSquaredError"},
      {"kld", "KLDivergence"},
      {"logcosh", "LogCosh"},
      {"kullback_leibler_divergence", "KLDivergence"},
      {"iou", "IoU"},
      {"mean_iou", "MeanIoU"},
      {"binary_iou", "BinaryIoU"},
      {"one_hot_iou", "OneHotIoU"},
      {"one_hot_mean_iou", "OneHotMeanIoU"},
      {"fbeta_score", "FBetaScore"},
  };
  for (const auto& [known, class_name] : odd)
    if (known == name) return std::string(class_name);
  std::string out;
  bool begins = true;
  for (char c : name) {
    if (c != '_') out += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '_';
  }
  return out;
}

namespace {

// What a row says of one argument.
struct ArgumentRule {
  std::string name;
  std::string_view bounds;  // "[0,1]"; "": it is no number

  bool is_real() const { return bounds.starts_with('[') || bounds.starts_with('('); }
  bool is_whole() const { return bounds.starts_with('{'); }
  std::string least() const { return std::string(bounds.substr(1, bounds.find(',') - 1)); }  // "": there is none
  std::string most() const { return std::string(bounds.substr(bounds.find(',') + 1, bounds.size() - bounds.find(',') - 2)); }
  bool allows(double value) const {
    constexpr double most_whole = 1e15;
    if (!std::isfinite(value) || (is_whole() && (value != std::trunc(value) || std::fabs(value) > most_whole))) return false;
    const double low = least().empty() ? value : std::stod(least()), high = most().empty() ? value : std::stod(most());
    const bool above = bounds.front() == '(' && !least().empty() ? value > low : value >= low;
    const bool below = bounds.back() == ')' && !most().empty() ? value < high : value <= high;
    return above && below;
  }
  std::string in_words() const {
    const std::string kind = is_whole() ? "a whole number" : "a finite number";
    if (!least().empty() && !most().empty()) return fmt::format("{} in {}", kind, bounds);
    if (!least().empty()) return fmt::format("{} {} {}", kind, bounds.front() == '(' ? "above" : "from", least());
    return most().empty() ? kind : fmt::format("{} {} {}", kind, bounds.back() == ')' ? "below" : "up to", most());
  }
};

std::vector<ArgumentRule> rules_of(std::string_view options) {
  std::vector<ArgumentRule> out;
  for (std::string_view word : words(options)) {
    const size_t bounds = std::min(word.find_first_of("[({"), word.size());
    if (!word.empty()) out.push_back({std::string(word.substr(0, bounds)), word.substr(bounds)});
  }
  return out;
}

const ArgumentRule* find_rule(const std::vector<ArgumentRule>& rules, const std::string& name) {
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const ArgumentRule& rule) { return rule.name == name; });
  return found == rules.end() ? nullptr : &*found;
}

void check_number(const Named& named, const ArgumentRule& rule, const Json& value) {
  if (value.is_list()) {
    for (const Json& item : value.items()) check_number(named, rule, item);
    return;
  }
  if (value.is_object() || value.is_bool()) return;  // a schedule; true is 1
  if (!value.is_number() || !rule.allows(value.as_number()))
    fail<InvalidArgument>("fit", "{} '{}': '{}' is {}; got {}", named.what, named.name, rule.name, rule.in_words(),
                          escape(value.dump(), 60));
}

Json written_number(const ArgumentRule& rule, const Json& value) {
  if (value.is_list()) {
    Json out = Json::list();
    for (const Json& item : value.items()) out.push(written_number(rule, item));
    return out;
  }
  if (!value.is_number()) return value;
  if (rule.is_real()) return value.as_number();
  return rule.is_whole() ? Json(value.as_int()) : value;
}

}  // namespace

void check_arguments(const Named& named, std::string_view options) {
  const std::vector<ArgumentRule> rules = rules_of(options);
  for (const auto& [key, value] : named.arguments.members()) {
    if (value.is_null()) continue;
    const ArgumentRule* rule = find_rule(rules, key);
    if (rule == nullptr) {
      std::vector<std::string> known;
      for (const ArgumentRule& one : rules) known.push_back(one.name);
      fail<InvalidArgument>("fit", "{} '{}' has no argument '{}'{}", named.what, named.name, escape(key), did_you_mean(key, known));
    }
    if (!rule->bounds.empty()) check_number(named, *rule, value);
  }
}

Json written_arguments(const Named& named, std::string_view options) {
  const std::vector<ArgumentRule> rules = rules_of(options);
  Json out = Json::object();
  for (const auto& [key, value] : named.arguments.members()) {
    const ArgumentRule* rule = find_rule(rules, key);
    out.set(key, rule == nullptr ? value : written_number(*rule, value));
  }
  return out;
}

void refuse_unknown(const Named& named, const std::vector<std::string>& known) {
  std::string hint = did_you_mean(named.name, known);
  if (hint.empty() && named.of_keras) {
    const std::string key = named.what == "metric" ? "metrics" : named.what == "schedule" ? "optimizer" : named.what;
    hint = fmt::format("; hint: Python code is not in the file; a job with a key '{}' of its own needs none", key);
  }
  fail<InvalidArgument>("fit", "there is no {} '{}'{}", named.what, escape(named.name), hint);
}

}  // namespace tutti::keras
