#include "tutti/keras/summary.h"

#include <algorithm>
#include <map>

#include "tutti/graph/cost.h"

namespace tutti::keras {

namespace {

// One walk through the model at a batch size and an extent for all open ones.
struct Walk {
  Walk(const Model& model, int64_t batch, int64_t extent) : graph(model.walk(batch, extent, layers)) {}
  std::vector<LayerTrace> layers;
  Graph graph;
};

// Extents that change with batch and open extents are open themselves.
OpenType open_type(const Type& type, const Type* other) {
  OpenType out{type.dtype, type.shape.extents()};
  if (other == nullptr || other->shape.rank() != type.shape.rank()) return out;
  for (size_t axis = 0; axis < out.shape.size(); ++axis)
    if (other->shape[static_cast<int64_t>(axis)] != out.shape[axis]) out.shape[axis] = -1;
  return out;
}

void count(const Scope& scope, bool trainable, int64_t& all, int64_t& trained, int64_t& bytes) {
  trainable = trainable && scope.trainable();
  for (const auto& variable : scope.variables()) {
    if (variable->repeats) continue;
    all += variable->type.shape.elements();
    bytes += variable->type.bytes();
    if (trainable && variable->trainable) trained += variable->type.shape.elements();
  }
  for (const auto& child : scope.children()) count(*child, trainable, all, trained, bytes);
}

const Json* layers_of(const Json& layer) {
  const Json* config = layer.is_object() ? layer.find("config") : nullptr;
  const Json* layers = config != nullptr && config->is_object() ? config->find("layers") : nullptr;
  return layers != nullptr && layers->is_list() ? layers : nullptr;
}

std::string class_of(const Json& layer) {
  const Json* name = layer.is_object() ? layer.find("class_name") : nullptr;
  return name != nullptr && name->is_string() ? name->as_string() : "?";
}

// An input layer gives what it declares; one that declares nonsense is among the model's problems.
std::vector<OpenType> declared_output(const Json& input_layer) {
  try {
    ModelInput input = input_of_layer(input_layer);
    return {{input.dtype, input.shape}};
  } catch (const Error&) {
    return {};
  }
}

class Summarizer {
 public:
  explicit Summarizer(const Model& model)
      : model_(model), walk_(model, 1, model.probe_extent()), other_(model, 2, 2 * model.probe_extent()) {
    for (size_t i = 0; i < walk_.layers.size(); ++i) calls_[walk_.layers[i].scope->path()].push_back(i);
    for (const auto& entry : other_.layers) others_.try_emplace(entry.scope->path(), &entry);
  }

  Summary run() {
    out_.open_extents = has_open_extents(model_.inputs());
    count(model_.variables(), true, out_.parameters, out_.trainable, out_.parameter_bytes);
    if (!walk_.layers.empty()) out_.outputs = outputs_of(walk_.layers[0]);
    Cost total = cost(walk_.graph);
    out_.flops = total.flops;
    out_.bytes = total.bytes;
    add_layers(model_.config(), "", 0, true);
    return std::move(out_);
  }

 private:
  void add_layers(const Json& model, const std::string& path, int depth, bool trainable) {
    const Json* layers = layers_of(model);
    if (layers == nullptr) return;
    for (const Json& layer : layers->items()) {
      std::string name = layer_name(layer), inner = path.empty() ? name : path + "/" + name;
      LayerSummary& row = out_.layers.emplace_back();
      row.name = name;
      row.class_name = class_of(layer);
      row.depth = depth;
      bool below = fill(row, inner, trainable);
      if (row.class_name == "InputLayer") row.outputs = declared_output(layer);
      if (layers_of(layer) != nullptr)
        add_layers(layer, inner, depth + 1, below);
      else
        add_inner(inner, depth, below);
    }
  }

  // Layers that a wrapper or a recurrent layer holds: the walk knows them.
  void add_inner(const std::string& path, int depth, bool trainable) {
    auto own = calls_.find(path);
    if (own == calls_.end()) return;
    const LayerTrace& outer = walk_.layers[own->second[0]];
    for (size_t i = own->second[0] + 1; i < walk_.layers.size() && walk_.layers[i].depth > outer.depth; ++i) {
      const LayerTrace& entry = walk_.layers[i];
      if (calls_.at(entry.scope->path())[0] != i) continue;
      LayerSummary& row = out_.layers.emplace_back();
      row.name = entry.name;
      row.class_name = entry.class_name;
      row.depth = depth + entry.depth - outer.depth;
      fill(row, entry.scope->path(), trainable);
    }
  }

  // Whether the layers below are trainable, too.
  bool fill(LayerSummary& row, const std::string& path, bool trainable) {
    auto found = calls_.find(path);
    if (found == calls_.end()) return trainable;
    const LayerTrace& first = walk_.layers[found->second[0]];
    row.outputs = outputs_of(first);
    row.calls = static_cast<int>(found->second.size());
    for (size_t i : found->second)
      for (size_t node = walk_.layers[i].first_node; node < walk_.layers[i].end_node; ++node)
        row.flops += cost(walk_.graph, walk_.graph.nodes()[node]).flops;
    int64_t bytes = 0;
    count(*first.scope, trainable, row.parameters, row.trainable, bytes);
    return trainable && first.scope->trainable();
  }

  std::vector<OpenType> outputs_of(const LayerTrace& entry) const {
    auto other = others_.find(entry.scope->path());
    std::vector<OpenType> out;
    for (size_t i = 0; i < entry.outputs.size(); ++i) {
      bool has = other != others_.end() && i < other->second->outputs.size();
      out.push_back(open_type(entry.outputs[i], has ? &other->second->outputs[i] : nullptr));
    }
    return out;
  }

  const Model& model_;
  Walk walk_, other_;
  std::map<std::string, std::vector<size_t>> calls_;  // by path; places in walk_.layers
  std::map<std::string, const LayerTrace*> others_;   // the first call of each
  Summary out_;
};

}  // namespace

Summary summarize(const Model& model) { return Summarizer(model).run(); }

std::vector<OpenType> output_types(const AnyModel& model) {
  if (!model.problems().empty()) return {};
  auto lowered = [&](int64_t batch, int64_t extent) {
    LowerOptions options{.batch = batch};
    for (const Type& type : model.input_types({.batch = batch}, extent)) options.input_shapes.push_back(type.shape);
    return model.lower(options);
  };
  const Graph one = lowered(1, model.probe_extent()), other = lowered(2, 2 * model.probe_extent());
  std::vector<OpenType> out;
  for (size_t i = 0; i < one.outputs().size(); ++i)
    out.push_back(open_type(one.type(one.outputs()[i].value), &other.type(other.outputs()[i].value)));
  return out;
}

}  // namespace tutti::keras
