#include "tutti/keras/fit/as_keras3.h"

#include <algorithm>
#include <functional>

#include "tutti/base/error.h"
#include "tutti/keras/fit/build.h"
#include "tutti/keras/layer.h"

namespace tutti::keras {

namespace {

bool is_one_of(std::string_view list, std::string_view word) {
  const auto all = words(list);
  return std::find(all.begin(), all.end(), word) != all.end();
}

bool is_layer(const Json& json) {
  if (!json.is_object()) return false;
  const Json *name = json.find("class_name"), *config = json.find("config");
  return name != nullptr && name->is_string() && config != nullptr && config->is_object();
}

bool is_of_class(const Json& json, std::string_view name) { return is_layer(json) && json.at("class_name").as_string() == name; }

// Options that Keras 3 refuses for their name alone, with values that say nothing.
bool is_gone(std::string_view class_name, std::string_view key, const Json& value) {
  static constexpr std::pair<std::string_view, std::string_view> gone[] = {
      {"MultiHeadAttention", "query_shape key_shape value_shape softmax_robust_masking"},
      {"SpatialDropout1D SpatialDropout2D SpatialDropout3D", "trainable noise_shape"},
      {"SeparableConv1D SeparableConv2D DepthwiseConv1D DepthwiseConv2D", "kernel_initializer kernel_regularizer kernel_constraint"},
  };
  if (is_one_of("shared_object_id rng_type", key)) return true;
  if (is_one_of("time_major causal", key)) return value.is_bool() && !value.as_bool();
  if (key == "groups") return value.is_int() && value.as_int() == 1;
  if (key == "batch_input_shape") return class_name != "InputLayer";
  return std::any_of(std::begin(gone), std::end(gone),
                     [&](const auto& row) { return is_one_of(row.first, class_name) && is_one_of(row.second, key); });
}

// Where Keras 2 keeps its classes of models. Without one they are looked for where Keras 3 does.
bool is_inner_module(const Json& module) {
  return module.is_string() && (module.as_string().starts_with("tf_keras") || module.as_string().find(".engine.") != std::string::npos);
}

Json renewed(const Json& json);

Json renewed_option(std::string_view class_name, const std::string& key, const Json& value) {
  if (key == "axis" && class_name == "BatchNormalization" && value.is_list() && value.size() == 1) return value[0];
  if (key == "dtype" && is_layer(value) && value.at("class_name").as_string().starts_with("Policy")) return value.at("config").at("name");
  Json out = renewed(value);
  if (!key.ends_with("_initializer") || !is_layer(out)) return out;
  Json arguments = Json::object();
  for (const auto& [name, argument] : out.at("config").members())
    if (name != "dtype") arguments.set(name, argument);
  out.set("config", std::move(arguments));
  return out;
}

// Keras 3 asks for a layer of its own where the first layer of a Sequential told what it gets.
Json with_input_layer(const Json& layers) {
  const Json* config = layers.size() > 0 && layers[0].is_object() ? layers[0].find("config") : nullptr;
  const Json* shape = config != nullptr ? config->find("batch_input_shape") : nullptr;
  if (shape == nullptr || is_of_class(layers[0], "InputLayer")) return layers;
  const Json* dtype = config->find("dtype");
  const std::string name = config->has("name") ? config->at("name").as_string() + "_input" : "input";
  Json out = Json::list();
  out.push(JsonMembers{{"class_name", "InputLayer"},
                       {"config", JsonMembers{{"batch_input_shape", *shape},
                                              {"dtype", dtype != nullptr && dtype->is_string() ? *dtype : Json("float32")},
                                              {"name", name}}}});
  for (const Json& layer : layers.items()) out.push(layer);
  return out;
}

// References to calls of layers, [name, call, output], where the calls of those named count from one less.
Json with_earlier_calls(const Json& json, const std::vector<std::string>& names) {
  if (json.is_object()) {
    Json out = Json::object();
    for (const auto& [key, value] : json.members()) out.set(key, with_earlier_calls(value, names));
    return out;
  }
  if (!json.is_list()) return json;
  const bool counts = json.size() >= 3 && json[0].is_string() && json[1].is_int() && json[1].as_int() > 0 &&
                      std::find(names.begin(), names.end(), json[0].as_string()) != names.end();
  Json out = Json::list();
  for (size_t i = 0; i < json.size(); ++i) out.push(counts && i == 1 ? Json(json[i].as_int() - 1) : with_earlier_calls(json[i], names));
  return out;
}

bool is_plain_reference(const Json& json) {
  return json.is_list() && json.size() >= 3 && json[0].is_string() && json[1].is_int() && json[2].is_int();
}

// Keras 3 looks at where a tensor comes from alone, but wants it to have a shape.
Json as_tensor(const Json& reference) {
  return JsonMembers{{"class_name", "__keras_tensor__"},
                     {"config", JsonMembers{{"shape", JsonList{Json()}},
                                            {"dtype", "float32"},
                                            {"keras_history", JsonList{reference[0], reference[1], reference[2]}}}}};
}

// In a call as Keras 2 writes it Keras 3 finds no tensors among the named arguments: those calls are written as it does.
Json with_named_tensors(const Json& node) {
  if (!node.is_list() || node.size() == 0 || !is_plain_reference(node[0]) || node[0].size() < 4 || !node[0][3].is_object()) return node;
  bool any = false;
  Json named = Json::object(), first = Json::list();
  for (const auto& [key, value] : node[0][3].members()) {
    any = any || is_plain_reference(value);
    named.set(key, is_plain_reference(value) ? as_tensor(value) : value);
  }
  if (!any) return node;
  for (const Json& reference : node.items()) {
    if (!is_plain_reference(reference)) return node;
    first.push(as_tensor(reference));
  }
  return JsonMembers{{"args", JsonList{first.size() == 1 ? first[0] : first}}, {"kwargs", named}};
}

// A list of one tensor gives a list in Keras 3, where Keras 2 meant the tensor.
Json single(const Json& references) {
  return references.is_list() && references.size() == 1 && references[0].is_list() ? references[0] : references;
}

// Keras 2 counts how a Sequential was made as its first call.
Json with_calls_of_keras3(const Json& config) {
  if (!config.has("output_layers") || !config.has("input_layers")) return config;
  const Json* layers = config.find("layers");
  std::vector<std::string> names;
  for (size_t i = 0; layers != nullptr && layers->is_list() && i < layers->size(); ++i) {
    const Json& layer = (*layers)[i];
    if (!is_of_class(layer, "Sequential")) continue;
    const Json *inner = layer.at("config").find("layers"), *name = layer.at("config").find("name");
    const bool begins_with_input = inner != nullptr && inner->is_list() && inner->size() > 0 && is_of_class((*inner)[0], "InputLayer");
    if (begins_with_input && name != nullptr && name->is_string()) names.push_back(name->as_string());
  }
  Json out = config, list = Json::list();
  for (size_t i = 0; layers != nullptr && layers->is_list() && i < layers->size(); ++i) {
    const Json& layer = (*layers)[i];
    Json one = layer;
    if (const Json* nodes = layer.find("inbound_nodes"); nodes != nullptr && nodes->is_list()) {
      Json calls = Json::list();
      for (const Json& node : nodes->items()) calls.push(with_named_tensors(with_earlier_calls(node, names)));
      one.set("inbound_nodes", std::move(calls));
    }
    list.push(std::move(one));
  }
  out.set("layers", std::move(list));
  out.set("input_layers", single(config.at("input_layers")));
  out.set("output_layers", single(with_earlier_calls(config.at("output_layers"), names)));
  return out;
}

Json renewed(const Json& json) {
  if (json.is_list()) {
    Json out = Json::list();
    for (const Json& item : json.items()) out.push(renewed(item));
    return out;
  }
  if (!json.is_object()) return json;
  const std::string class_name = is_layer(json) ? json.at("class_name").as_string() : "";
  const bool is_inner = json.has("module") && is_inner_module(json.at("module"));
  Json out = Json::object();
  for (const auto& [key, value] : json.members()) {
    if (is_one_of("shared_object_id build_config", key) || (is_inner && is_one_of("module registered_name", key))) continue;
    if (key != "config" || class_name.empty()) {
      out.set(key, renewed(value));
      continue;
    }
    Json config = Json::object();
    const Json counted = with_calls_of_keras3(value);
    for (const auto& [option, content] : counted.members())
      if (!is_gone(class_name, option, content))
        config.set(option, renewed_option(class_name, option,
                                          class_name == "Sequential" && option == "layers" ? with_input_layer(content) : content));
    out.set("config", std::move(config));
  }
  return out;
}

std::string without_slashes(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

void for_each_layer(const Json& json, const std::function<void(const Json&)>& visit) {
  if (json.is_list())
    for (const Json& item : json.items()) for_each_layer(item, visit);
  if (!json.is_object()) return;
  if (is_layer(json)) visit(json);
  for (const auto& [key, value] : json.members()) for_each_layer(value, visit);
}

Json with_names(const Json& json, const std::vector<std::string>& slashed) {
  if (json.is_string())
    return std::find(slashed.begin(), slashed.end(), json.as_string()) == slashed.end() ? json : Json(without_slashes(json.as_string()));
  if (json.is_list()) {
    Json out = Json::list();
    for (const Json& item : json.items()) out.push(with_names(item, slashed));
    return out;
  }
  if (!json.is_object()) return json;
  Json out = Json::object();
  for (const auto& [key, value] : json.members()) out.set(key, with_names(value, slashed));
  return out;
}

// In the layers' own configs and wherever they are referred to.
Json with_plain_names(const Json& json) {
  std::vector<std::string> slashed;
  for_each_layer(json, [&](const Json& layer) {
    const Json* name = layer.at("config").find("name");
    if (name != nullptr && name->is_string() && name->as_string().find('/') != std::string::npos) slashed.push_back(name->as_string());
  });
  return slashed.empty() ? json : with_names(json, slashed);
}

// Keras 3 gave a few weights shorter names: the kernel of DepthwiseConv2D was its depthwise_kernel.
bool is_same_weight(const std::string& old_path, const std::string& path) {
  const size_t old_name = old_path.rfind('/') + 1, name = path.rfind('/') + 1;  // 0: there is no slash
  return without_slashes(old_path.substr(0, old_name)) == without_slashes(path.substr(0, name)) && old_path.ends_with(path.substr(name));
}

}  // namespace

Model as_keras3(const Model& model) {
  Model out = from_config(with_plain_names(renewed(model.config())), built_version);
  const auto refuse = [&](const std::string& why) {
    fail<Unsupported>("fit",
                      "the model is of Keras {} and does not become one of Keras 3: {}; hint: open it in Keras 3 and save it as .keras",
                      model.keras_version(), why);
  };
  if (!out.problems().empty()) refuse(out.problems()[0]);
  const auto from = model.variables().flatten(), to = out.variables().flatten();
  if (from.size() != to.size()) refuse(fmt::format("it has {} variables, {} are expected", from.size(), to.size()));
  for (size_t i = 0; i < from.size(); ++i) {
    if (!is_same_weight(from[i]->path, to[i]->path) || !(from[i]->value.type() == to[i]->type))
      refuse(fmt::format("its variable '{}' is {}, expected '{}', {}", from[i]->path, to_string(from[i]->value.type()), to[i]->path,
                         to_string(to[i]->type)));
    to[i]->value = from[i]->value;
  }
  return out;
}

std::vector<std::string> classes_without_keras3(const Model& model) {
  constexpr std::string_view gone =
      "LocallyConnected1D LocallyConnected2D ThresholdedReLU TFOpLambda SlicingOpLambda TensorFlowOpLayer RandomHeight RandomWidth";
  std::vector<std::string> out;
  for_each_layer(model.config(), [&](const Json& layer) {
    const std::string name = layer.at("class_name").as_string();
    if (is_one_of(gone, name) && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  });
  return out;
}

bool has_activation(const Model& model, std::string_view name) {
  bool found = false;
  for_each_layer(model.config(), [&](const Json& layer) {
    for (const auto& [key, value] : layer.at("config").members())
      found = found || (key.ends_with("activation") && value.is_string() && value.as_string() == name);
  });
  return found;
}

}  // namespace tutti::keras
