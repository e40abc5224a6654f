#include "tutti/keras/fit/named.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "tutti/base/error.h"

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
    given = json.find("config");
    if (out.name == "function" && given != nullptr && given->is_string()) {  // a serialized function
      out.name = given->as_string();
      given = nullptr;
    }
  } else if (json.is_object() && text_member(json, "name") != nullptr) {
    out.name = text_member(json, "name")->as_string();
    given = &json;
  } else {
    fail<InvalidArgument>("fit", "{} is a name, or a table with a name and arguments; got {}", out.what, escape(json.dump(), 80));
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

void check_arguments(const Named& named, std::string_view options) {
  std::vector<std::string> known;
  while (!options.empty()) {
    const size_t space = options.find(' ');
    known.emplace_back(options.substr(0, space));
    options = space == std::string_view::npos ? std::string_view() : options.substr(space + 1);
  }
  for (const auto& [key, value] : named.arguments.members())
    if (!value.is_null() && std::find(known.begin(), known.end(), key) == known.end())
      fail<InvalidArgument>("fit", "{} '{}' has no argument '{}'{}", named.what, named.name, escape(key), did_you_mean(key, known));
}

void check_finite(const Named& named) {
  const auto is_finite = [](const Json& value) { return !value.is_number() || std::isfinite(value.as_number()); };
  for (const auto& [key, value] : named.arguments.members())
    if (!is_finite(value) || (value.is_list() && !std::all_of(value.items().begin(), value.items().end(), is_finite)))
      fail<InvalidArgument>("fit", "{} '{}': '{}' is finite; got {}", named.what, named.name, escape(key), escape(value.dump(), 60));
}

void refuse_unknown(const Named& named, const std::vector<std::string>& known) {
  fail<InvalidArgument>("fit", "there is no {} '{}'{}", named.what, escape(named.name), did_you_mean(named.name, known));
}

}  // namespace tutti::keras
