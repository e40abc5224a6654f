#include "tutti/keras/legacy.h"

namespace tutti::keras {

namespace {

// Names that TensorFlow 1 and 2.0 gave to classes that have others since.
std::string_view present_name(std::string_view class_name) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"BatchNormalizationV1", "BatchNormalization"},
      {"BatchNormalizationV2", "BatchNormalization"},
      {"SyncBatchNormalization", "BatchNormalization"},
      {"UnifiedGRU", "GRU"},
      {"UnifiedLSTM", "LSTM"},
  };
  for (const auto& [before, now] : names)
    if (class_name == before) return now;
  return class_name;
}

}  // namespace

Json modernize(const Json& config) {
  if (config.is_list()) {
    Json out = Json::list();
    for (const Json& item : config.items()) out.push(modernize(item));
    return out;
  }
  if (!config.is_object()) return config;
  Json out = Json::object();
  for (const auto& [key, value] : config.members()) out.set(key, modernize(value));
  const Json *name = out.find("class_name"), *inner = out.find("config");
  if (name == nullptr || !name->is_string() || inner == nullptr) return out;
  if (name->as_string() == "Sequential" && inner->is_list()) {
    Json model = Json::object();
    const Json* own = out.find("name");
    model.set("name", own != nullptr ? *own : Json("sequential"));
    model.set("layers", *inner);
    out.set("config", std::move(model));
  } else {
    out.set("class_name", present_name(name->as_string()));
  }
  return out;
}

}  // namespace tutti::keras
