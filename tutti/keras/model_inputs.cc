#include "tutti/keras/model_inputs.h"

#include <algorithm>
#include <map>
#include <set>

#include "tutti/base/error.h"
#include "tutti/keras/config.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

Ints read_shape(const Config& config, const Json& json) {
  if (!json.is_list() || json.size() == 0) config.invalid("an input shape is a list; got {}", escape(json.dump(), 60));
  Ints out;
  for (const Json& extent : json.items()) {
    if (!extent.is_null() && !extent.is_int()) config.invalid("an input shape is a list of integers; got {}", escape(json.dump(), 60));
    out.push_back(extent.is_int() ? extent.as_int() : -1);
    if (out.back() < -1) config.invalid("an input shape has a negative extent: {}", to_string(out));
  }
  out[0] = -1;  // the batch is the caller's choice
  return out;
}

bool is_tensor_reference(const Json& json) {
  return json.is_list() && json.size() >= 3 && json[0].is_string() && json[1].is_int() && json[2].is_int();
}

const Json& find_layer_json(const Config& config, const std::string& name) {
  for (const Json& layer : config.at("layers").items())
    if (layer.is_object() && layer_name(layer) == name) return layer;
  config.invalid("layer '{}' does not exist", name);
}

}  // namespace

bool has_open_extents(const ModelInput& input) { return std::find(input.shape.begin() + 1, input.shape.end(), -1) != input.shape.end(); }

bool has_open_extents(const std::vector<ModelInput>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const ModelInput& input) { return has_open_extents(input); });
}

ModelInput input_of_layer(const Json& layer) {
  static const Json empty = Json::object();
  const Json* json = layer.find("config");
  Config config(json != nullptr ? *json : empty, "input layer");
  ModelInput out;
  out.name = layer_name(layer);
  if (config.flag("sparse", false) || config.flag("ragged", false))
    config.unsupported("'{}': sparse and ragged inputs are not read", out.name);
  if (config.has("batch_shape")) {
    out.shape = read_shape(config, config.at("batch_shape"));
  } else if (config.has("batch_input_shape")) {
    out.shape = read_shape(config, config.at("batch_input_shape"));
  } else {
    config.invalid("'{}' has no shape", out.name);
  }
  out.dtype = read_policy(config).compute;
  return out;
}

std::vector<const Json*> flatten_structure(const Json& structure) {
  if (is_tensor_reference(structure)) return {&structure};
  std::vector<const Json*> out;
  auto append = [&](const Json& item) {
    auto below = flatten_structure(item);
    out.insert(out.end(), below.begin(), below.end());
  };
  if (structure.is_list()) {
    for (const Json& item : structure.items()) append(item);
  } else if (structure.is_object()) {
    std::vector<std::pair<std::string, const Json*>> sorted;
    for (const auto& [key, item] : structure.members()) sorted.emplace_back(key, &item);
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, item] : sorted) append(*item);
  } else {
    fail<InvalidModel>("keras", "a tensor is [layer, node, index]; got {}", escape(structure.dump(), 60));
  }
  return out;
}

std::vector<ModelInput> model_inputs(const Json& model) {
  Config outer(model, "the model");
  Config config(outer.at("config"), "the model");
  if (config.has("input_layers")) {
    std::vector<ModelInput> out;
    for (const Json* reference : flatten_structure(config.at("input_layers")))
      out.push_back(input_of_layer(find_layer_json(config, (*reference)[0].as_string())));
    return out;
  }
  const Json& layers = config.at("layers");
  if (!layers.is_list() || layers.size() == 0) config.invalid("has no layers");
  const Json& first = layers[0];
  if (!first.is_object()) config.invalid("a layer is an object");
  const Json* class_name = first.find("class_name");
  if (class_name != nullptr && class_name->is_string() && class_name->as_string() == "InputLayer") return {input_of_layer(first)};
  // Without an input layer: the first layer's own declaration, a nested model's inputs, or the shape the model was built with.
  const Json* first_config = first.find("config");
  ModelInput out{layer_name(first) + "_input", DType::f32, {}};
  if (first_config != nullptr && first_config->is_object() && first_config->has("batch_input_shape")) {
    out.shape = read_shape(config, first_config->at("batch_input_shape"));
  } else if (first_config != nullptr && first_config->is_object() && first_config->has("layers")) {
    return model_inputs(first);
  } else if (config.has("build_input_shape")) {
    out.shape = read_shape(config, config.at("build_input_shape"));
  } else if (outer.has("build_config") && outer.at("build_config").is_object() && outer.at("build_config").has("input_shape") &&
             outer.at("build_config").at("input_shape").is_list()) {
    out.shape = read_shape(config, outer.at("build_config").at("input_shape"));
  } else {
    config.invalid(
        "was saved before it was built, so its input shape is unknown; hint: call it once, or add keras.Input, and save it again");
  }
  return {out};
}

std::vector<std::string> model_output_names(const Json& model) {
  Config config(Config(model, "the model").at("config"), "the model");
  std::vector<std::string> out;
  if (config.has("output_layers")) {
    for (const Json* reference : flatten_structure(config.at("output_layers"))) out.push_back((*reference)[0].as_string());
  } else {
    const Json& layers = config.at("layers");
    if (!layers.is_list() || layers.size() == 0) config.invalid("has no layers");
    out.push_back(layer_name(layers[layers.size() - 1]));
  }
  // Repeated names are numbered as Keras 2 does. Keras 3 leaves them repeated, so there no number makes a name that another output has.
  const Json& all_layers = config.at("layers");
  const bool numbers_any = std::none_of(all_layers.items().begin(), all_layers.items().end(), has_calls_of_keras3);
  const std::set<std::string> written = numbers_any ? std::set<std::string>{} : std::set<std::string>(out.begin(), out.end());
  std::set<std::string> taken;
  std::map<std::string, int> counts;
  for (std::string& name : out) {
    const std::string base = name;
    bool is_free = taken.insert(name).second;
    while (!is_free) {
      name = base + "_" + std::to_string(++counts[base]);
      is_free = !written.contains(name) && taken.insert(name).second;
    }
  }
  return out;
}

std::vector<std::string> model_target_names(const Json& model) {
  const Json* outputs = model.at("config").find("output_layers");
  std::vector<std::string> keys;
  if (outputs != nullptr && outputs->is_object())
    for (const auto& [key, item] : outputs->members()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  std::vector<std::string> names = model_output_names(model);
  return keys.size() == names.size() ? keys : names;
}

}  // namespace tutti::keras
