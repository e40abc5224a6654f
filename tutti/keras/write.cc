#include "tutti/keras/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/base/zip_writer.h"
#include "tutti/keras/fit/losses.h"
#include "tutti/keras/fit/metrics.h"
#include "tutti/keras/hdf5/writer.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

// The Keras whose layout we write: what readers of the file see as its version.
constexpr const char* written_version = "3.15.1";

void put_text(ZipWriter& zip, const char* name, const std::string& text) {
  zip.begin(name);
  zip.write(std::as_bytes(std::span(text.data(), text.size())));
  zip.end();
}

std::string joined_path(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

// HDF5 has no bfloat16; Keras rounds what it reads to the variable's own type.
Tensor as_written(const Tensor& value) { return value.dtype() == DType::bf16 ? value.converted(DType::f32) : value; }

// The first variable with what LoRA's factors, the two of the others that are merged, add to it.
Tensor with_factors(const Scope& scope, const Tensor& kernel) {
  std::vector<const Variable*> factors;
  for (const auto& variable : scope.variables())
    if (variable->is_merged()) factors.push_back(variable.get());
  if (factors.size() != 2) return kernel;
  Tensor sum = kernel.converted(DType::f32);
  const auto a = std::as_const(factors[0]->value).as<float>(), b = std::as_const(factors[1]->value).as<float>();
  const auto rank = static_cast<size_t>(factors[1]->type.shape[0]), columns = static_cast<size_t>(factors[1]->type.shape[1]);
  const auto to = sum.as<float>();
  for (size_t i = 0; i < to.size(); ++i) {
    float product = 0;
    for (size_t k = 0; k < rank; ++k) product += a[i / columns * rank + k] * b[k * columns + i % columns];
    to[i] += static_cast<float>(factors[0]->merge_scale) * product;
  }
  return sum.converted(kernel.dtype());
}

// What is the sublayer's as well is written as that has it.
const Variable& original(const Scope& scope, const Variable& variable) {
  if (variable.repeats)
    for (const auto& child : scope.children())
      for (const auto& own : child->variables())
        if (own->name == variable.name) return *own;
  return variable;
}

void add_variables(hdf5::Writer& file, const Scope& scope) {
  const std::string own = joined_path(scope.keys(), "vars");
  file.group(own);  // Keras looks for it even where nothing is in it
  for (size_t i = 0, number = 0; i < scope.variables().size(); ++i) {
    const Variable& variable = original(scope, *scope.variables()[i]);
    if (variable.is_merged()) continue;
    if (variable.value.empty()) fail<InvalidArgument>("keras", "the variable '{}' has no value to write", variable.path);
    file.dataset(joined_path(own, std::to_string(number++)), as_written(i == 0 ? with_factors(scope, variable.value) : variable.value));
  }
  for (const auto& child : scope.children()) add_variables(file, *child);
}

}  // namespace

namespace {

// The class of a loss or metric; "" where Keras knows the text by itself.
std::string_view class_of_text(std::string_view module, const std::string& text) {
  static constexpr std::array<std::string_view, 3> rows[] = {
      {"keras.losses", "logcosh", "LogCosh"},
      {"keras.losses", "kullbackleiblerdivergence", "KLDivergence"},
      {"keras.losses", "categoricalgeneralizedcrossentropy", "CategoricalGeneralizedCrossEntropy"},
      {"keras.metrics", "rmse", "RootMeanSquaredError"},
      {"keras.metrics", "logcosh", "LogCoshError"},
      {"keras.metrics", "kld", "KLDivergence"},
      {"keras.metrics", "kullbackleiblerdivergence", "KLDivergence"},
  };
  const std::string plain = plain_name(text);
  for (const auto& [of, name, class_name] : rows)
    if (of == module && name == plain) return class_name;
  return "";
}

Json serialized_class(const char* module, std::string_view class_name, const Json& config) {
  return JsonMembers{{"module", module}, {"class_name", class_name}, {"config", config}, {"registered_name", nullptr}};
}

// {"name": "log_cosh", arguments} of a job file as Keras serializes it; text that Keras knows and what is serialized already stay, the
// latter with the module that .h5 files do not say. Lists and tables by output are gone through.
Json serialized(const Json& json, const char* module, Json (*written)(const Named&)) {
  if (json.is_list()) {
    Json out = Json::list();
    for (const Json& item : json.items()) out.push(serialized(item, module, written));
    return out;
  }
  if (json.is_string()) {
    const std::string_view class_name = class_of_text(module, json.as_string());
    return class_name.empty() ? json : serialized_class(module, class_name, JsonMembers{{"name", json}});
  }
  if (!json.is_object()) return json;
  if (json.has("class_name")) {
    Json out = json;
    if (!out.has("module")) out.set("module", module);
    return out;
  }
  Json out = Json::object();
  if (!json.has("name")) {
    for (const auto& [key, value] : json.members()) out.set(key, serialized(value, module, written));
    return out;
  }
  const Named named = read_named(json, module);
  const std::string_view class_name = class_of_text(module, named.name);
  return serialized_class(module, class_name.empty() ? class_of_name(named.name) : class_name, written(named));
}

}  // namespace

namespace {

// The module in which Keras 3 finds a layer's or operation's class.
std::string_view module_of(const Json& layer) {
  const std::string& name = layer.at("class_name").as_string();
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, std::string_view(name)) != names.end();
  };
  if (is_operation(layer)) {
    if (is_one_of({"AffineTransform", "CropImages", "ExtractPatches", "GaussianBlur", "HSVToRGB", "MapCoordinates", "PadImages", "Resize",
                   "RGBToGrayscale", "RGBToHSV", "SobelEdges", "SSIM"}))
      return "keras.src.ops.image";
    if (is_one_of({"ReLU", "Mish"})) return "keras.src.activations.activations";
    return name == "Rearrange" ? "keras.src.ops.einops" : "keras.src.ops";
  }
  if (name == "Sequential") return "keras";
  if (is_one_of({"Functional", "Model"})) return "keras.src.models.functional";
  if (is_one_of({"LayerScale", "StochasticDepth"})) return "keras.src.applications.convnext";
  return name == "CustomScaleLayer" ? "keras.src.applications.inception_resnet_v2" : "keras.layers";
}

// A layer of an .h5 file, which does not say where its class is. Keras would read it by older rules, that know no operations and leave out
// or mistake some options.
Json with_module(Json layer) {
  if (layer.has("module")) return layer;
  const std::string_view module = module_of(layer);
  if (module.ends_with("functional")) layer.set("class_name", "Functional");
  layer.set("module", std::string(module));
  layer.set("registered_name", module.starts_with("keras.src.") ? Json(layer.at("class_name")) : Json());
  return layer;
}

// The same of all layers of a config, however deep.
Json with_modules(const Json& config) {
  if (config.is_list()) {
    Json out = Json::list();
    for (const Json& item : config.items()) out.push(with_modules(item));
    return out;
  }
  if (!config.is_object()) return config;
  Json out = Json::object();
  for (const auto& [key, value] : config.members()) {
    if (key != "layers" || !value.is_list()) {
      out.set(key, with_modules(value));
      continue;
    }
    Json layers = Json::list();
    for (const Json& layer : value.items()) {
      const bool is_layer = layer.is_object() && layer.has("class_name") && layer.at("class_name").is_string();
      layers.push(with_modules(is_layer ? with_module(layer) : layer));
    }
    out.set(key, std::move(layers));
  }
  return out;
}

}  // namespace

void write_model(const std::string& path, const Model& model, const CompiledWith* compiled, bool durable) {
  if (!model.problems().empty()) fail<Unsupported>("keras", "a model with problems is not written: {}", model.problems()[0]);
  if (!model.keras_version().starts_with("3"))
    fail<Unsupported>("keras", "the model is of Keras {}, whose layers a .keras file of Keras 3 cannot hold", model.keras_version());
  OutputFile file(path);
  ZipWriter zip(file);
  put_text(zip, "metadata.json", Json(JsonMembers{{"keras_version", model.keras_version()}, {"date_saved", "1980-01-01@00:00:00"}}).dump());
  Json config = with_module(with_modules(model.config()));
  if (compiled != nullptr)
    config.set("compile_config", JsonMembers{{"optimizer", compiled->optimizer},
                                             {"loss", serialized(compiled->loss, "keras.losses", written_loss)},
                                             {"loss_weights", compiled->loss_weights},
                                             {"metrics", serialized(compiled->metrics, "keras.metrics", written_metric)},
                                             {"weighted_metrics", serialized(compiled->weighted_metrics, "keras.metrics", written_metric)},
                                             {"run_eagerly", false},
                                             {"steps_per_execution", 1},
                                             {"jit_compile", false}});
  put_text(zip, "config.json", config.dump());
  hdf5::Writer weights;
  add_variables(weights, model.variables());
  if (compiled != nullptr)
    for (size_t i = 0; i < compiled->optimizer_variables.size(); ++i)
      weights.dataset(fmt::format("optimizer/vars/{}", i), as_written(compiled->optimizer_variables[i]));
  // What is inside a LossScaleOptimizer stands there a second time.
  constexpr size_t of_the_scale = 4;
  if (compiled != nullptr && compiled->optimizer.at("class_name").as_string() == "LossScaleOptimizer")
    for (size_t i = of_the_scale; i < compiled->optimizer_variables.size(); ++i)
      weights.dataset(fmt::format("optimizer/inner_optimizer/vars/{}", i - of_the_scale), as_written(compiled->optimizer_variables[i]));
  zip.begin("model.weights.h5");
  weights.write([&](std::span<const std::byte> bytes) { zip.write(bytes); });
  zip.end();
  for (const auto& [name, text] : model.assets()) put_text(zip, ("assets/" + name).c_str(), text);
  zip.finish();
  file.commit(durable);
}

namespace {

Json tensor_reference(const std::string& layer, size_t output, const Ints& shape, DType dtype) {
  Json extents = Json::list();
  for (int64_t extent : shape) extents.push(extent < 0 ? Json() : Json(extent));
  return JsonMembers{
      {"class_name", "__keras_tensor__"},
      {"config", JsonMembers{{"shape", extents}, {"dtype", numpy_name(dtype)}, {"keras_history", JsonList{layer, 0, output}}}}};
}

Json called_on(Json arguments) { return JsonList{JsonMembers{{"args", JsonList{std::move(arguments)}}, {"kwargs", Json::object()}}}; }

// Objects that a file shares among its layers are named by numbers; those of different files must not meet.
Json renumbered(const Json& config, int64_t member) {
  if (config.is_list()) {
    Json out = Json::list();
    for (const Json& item : config.items()) out.push(renumbered(item, member));
    return out;
  }
  if (!config.is_object()) return config;
  Json out = Json::object();
  for (const auto& [key, value] : config.members()) {
    if (key == "shared_object_id" && value.is_int()) {
      constexpr int64_t most = int64_t{1} << 44;
      out.set(key, (member + 1) * most + (value.as_int() & (most - 1)));
    } else {
      out.set(key, renumbered(value, member));
    }
  }
  return out;
}

class EnsembleConfig {
 public:
  explicit EnsembleConfig(const EnsembleLayers& file) : file_(file) {}

  // The serialized Functional model.
  Json make() {
    for (const auto& output : file_.outputs) names_.insert(output.name);
    for (const ModelInput& input : file_.inputs) input_names_.push_back(unique(input.name));
    for (const auto& member : file_.members) member_names.push_back(unique(member.name));
    for (size_t i = 0; i < file_.inputs.size(); ++i) add_input(i);
    for (size_t m = 0; m < file_.members.size(); ++m) add_member(m);
    Json inputs = Json::list(), outputs = Json::list();
    for (const std::string& name : input_names_) inputs.push(JsonList{name, 0, 0});
    const auto& first = file_.members[0];
    for (size_t output = 0; output < first.outputs.size(); ++output)
      for (const auto& reduction : file_.outputs) {
        const std::string& own = first.model->output_names()[first.outputs[output]];
        const std::string name = first.outputs.size() == 1 ? reduction.name : own + "." + reduction.name;
        add_reduction(name, reduction.layer, output);
        outputs.push(JsonList{name, 0, 0});
      }
    Json config = JsonMembers{{"name", "ensemble"}, {"trainable", true}, {"layers", layers_}};
    config.set("input_layers", inputs.size() == 1 ? inputs[0] : inputs);
    config.set("output_layers", outputs.size() == 1 ? outputs[0] : outputs);
    return JsonMembers{{"module", "keras.src.models.functional"},
                       {"class_name", "Functional"},
                       {"config", config},
                       {"registered_name", "Functional"},
                       {"build_config", JsonMembers{{"input_shape", Json()}}},
                       {"compile_config", Json()}};
  }

  std::vector<std::string> member_names;

 private:
  // Layer names have no slashes, and no two are equal.
  std::string unique(std::string name) {
    std::replace(name.begin(), name.end(), '/', '_');
    if (name.empty()) name = "member";
    std::string out = name;
    for (int i = 1; !names_.insert(out).second; ++i) out = fmt::format("{}_{}", name, i);
    return out;
  }

  void add_layer(Json layer, const std::string& name, Json inbound) {
    layer.set("name", name);
    layer.set("inbound_nodes", std::move(inbound));
    layers_.push(std::move(layer));
  }

  static Json plain_layer(const char* class_name, Json config) {
    return JsonMembers{{"module", "keras.layers"}, {"class_name", class_name}, {"config", std::move(config)}, {"registered_name", Json()}};
  }

  void add_input(size_t i) {
    const ModelInput& input = file_.inputs[i];
    Json shape = Json::list();
    for (size_t axis = 0; axis < input.shape.size(); ++axis)
      shape.push(axis == 0 || input.shape[axis] < 0 ? Json() : Json(input.shape[axis]));
    Json config = JsonMembers{
        {"batch_shape", shape}, {"dtype", numpy_name(input.dtype)}, {"sparse", false}, {"ragged", false}, {"name", input_names_[i]}};
    add_layer(plain_layer("InputLayer", config), input_names_[i], Json::list());
  }

  Json input_reference(size_t i) const { return tensor_reference(input_names_[i], 0, file_.inputs[i].shape, file_.inputs[i].dtype); }

  // A member's inputs as it takes them: one is [layer, node, tensor], several are lists and dictionaries of it, which go by sorted keys.
  Json arranged(const Json& structure, const std::vector<size_t>& sources, size_t& next) const {
    if (structure.is_object()) {
      std::map<std::string, const Json*> sorted;
      for (const auto& [key, value] : structure.members()) sorted[key] = &value;
      Json out = Json::object();
      for (const auto& [key, value] : sorted) out.set(key, arranged(*value, sources, next));
      return out;
    }
    if (structure.size() > 0 && structure[0].is_string()) return input_reference(sources.at(next++));
    Json out = Json::list();
    for (size_t i = 0; i < structure.size(); ++i) out.push(arranged(structure[i], sources, next));
    return out;
  }

  void add_member(size_t m) {
    const auto& [name, model, sources, places] = file_.members[m];
    if (!model->keras_version().starts_with("3"))
      fail<Unsupported>("ensemble", "member '{}' is of Keras {}, whose layers a .keras file of Keras 3 cannot hold; hint: -o X.toml", name,
                        model->keras_version());
    if (!model->assets().empty())
      fail<Unsupported>("ensemble", "member '{}' has vocabularies, which are not written into ensembles; hint: -o X.toml", name);
    for (size_t i = 0; i < sources.size(); ++i) {
      const ModelInput &ours = file_.inputs[sources[i]], &theirs = model->inputs()[i];
      bool takes = ours.shape.size() == theirs.shape.size() && ours.dtype == theirs.dtype;
      for (size_t axis = 1; takes && axis < theirs.shape.size(); ++axis)
        takes = theirs.shape[axis] < 0 || theirs.shape[axis] == ours.shape[axis];
      if (!takes)
        fail<Unsupported>("ensemble", "member '{}' takes {}{}, the ensemble {}{}: a .keras file would need layers between; hint: -o X.toml",
                          name, numpy_name(theirs.dtype), to_string(theirs.shape), numpy_name(ours.dtype), to_string(ours.shape));
    }
    Json member = renumbered(with_modules(model->config()), static_cast<int64_t>(m));
    Json config = member.at("config");
    config.set("name", member_names[m]);
    const bool sequential = member.at("class_name").as_string() == "Sequential";
    Json layer = JsonMembers{{"module", sequential ? "keras" : "keras.src.models.functional"},
                             {"class_name", sequential ? "Sequential" : "Functional"},
                             {"config", config},
                             {"registered_name", sequential ? Json() : Json("Functional")}};
    if (const Json* build = member.find("build_config")) layer.set("build_config", *build);
    const Json* structure = config.find("input_layers");
    size_t next = 0;
    const bool whole = structure == nullptr || (sources.size() == 1 && !structure->is_object());
    Json arguments = whole ? input_reference(sources[0]) : arranged(*structure, sources, next);
    add_layer(layer, member_names[m], called_on(std::move(arguments)));
  }

  // Shapes are for readers; Keras goes by the names.
  static Json result_reference(const std::string& layer, size_t output) { return tensor_reference(layer, output, {-1}, DType::f32); }

  void add_reduction(const std::string& name, MergeLayer layer, size_t output) {
    const bool weighted = layer == MergeLayer::average && !file_.weights.empty();
    double total = 0;
    for (double weight : file_.weights) total += weight;
    Json parts = Json::list();
    for (size_t m = 0; m < file_.members.size(); ++m) {
      const Json result = result_reference(member_names[m], file_.members[m].outputs[output]);
      if (!weighted) {
        parts.push(result);
        continue;
      }
      const std::string scaled = unique(member_names[m] + "_weighted");
      Json config = JsonMembers{{"name", scaled}, {"trainable", true}, {"scale", file_.weights[m] / total}, {"offset", 0.0}};
      add_layer(plain_layer("Rescaling", config), scaled, called_on(result));
      parts.push(result_reference(scaled, 0));
    }
    const char* class_name = layer == MergeLayer::minimum                ? "Minimum"
                             : layer == MergeLayer::maximum              ? "Maximum"
                             : layer == MergeLayer::average && !weighted ? "Average"
                                                                         : "Add";
    add_layer(plain_layer(class_name, JsonMembers{{"name", name}, {"trainable", true}}), name, called_on(std::move(parts)));
  }

  const EnsembleLayers& file_;
  std::set<std::string> names_;
  std::vector<std::string> input_names_;
  Json layers_ = Json::list();
};

void copy_values(const Scope& from, Scope& to) {
  for (size_t i = 0; i < to.variables().size(); ++i) to.variables()[i]->value = from.variables().at(i)->value;
  for (const auto& child : to.children()) {
    const auto found =
        std::find_if(from.children().begin(), from.children().end(), [&](const auto& one) { return one->key() == child->key(); });
    if (found == from.children().end()) fail<InternalError>("keras", "the member has no '{}'", child->key());
    copy_values(**found, *child);
  }
}

}  // namespace

Model ensemble_model(const EnsembleLayers& ensemble) {
  EnsembleConfig config(ensemble);
  Model model = from_config(config.make(), written_version);
  if (!model.problems().empty()) fail<InternalError>("keras", "the ensemble has problems: {}", model.problems()[0]);
  for (size_t m = 0; m < ensemble.members.size(); ++m)
    for (const auto& scope : model.variables().children())
      if (scope->path() == config.member_names[m]) copy_values(ensemble.members[m].model->variables(), *scope);
  return model;
}

}  // namespace tutti::keras
