// Models as layers: Sequential and, in functional.cc, Functional, nested to any depth.
#include "tutti/keras/layers/models.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/keras/layers/families.h"

namespace tutti::keras {

std::string LayerKeys::next(const Json& layer) {
  const Json* class_name = layer.find("class_name");
  std::string base = to_snake_case(class_name != nullptr && class_name->is_string() ? class_name->as_string() : "layer");
  // Classes that are exported under another name than their own.
  if (base == "model") base = "functional";
  if (base == "group_query_attention") base = "grouped_query_attention";
  int count = used_[base]++;
  return attribute_ + "/" + base + (count == 0 ? std::string() : fmt::format("_{}", count));
}

Signal adjust_input(const Config& config, Signal given, const ModelInput& expected) {
  Value v = convert(given.value, expected.dtype);
  auto rank = static_cast<int64_t>(expected.shape.size());
  Ints extents = v.shape().extents();
  if (v.rank() == rank + 1 && extents.back() == 1) {
    extents.pop_back();
  } else if (v.rank() == rank - 1 && expected.shape.back() == 1) {
    extents.push_back(1);
  } else if (v.rank() != rank) {
    config.invalid("input '{}' has rank {}; got {}", expected.name, rank, to_string(v.shape()));
  }
  for (size_t i = 1; i < extents.size(); ++i)
    if (expected.shape[i] >= 0 && extents[i] != expected.shape[i])
      config.invalid("input '{}' is {} (-1: any); got {}", expected.name, to_string(expected.shape), to_string(v.shape()));
  return {reshape(v, extents), given.mask};
}

void report_problem(Lowering& lowering, const Error& error) {
  if (lowering.problems == nullptr) throw;
  if (dynamic_cast<const Reported*>(&error) != nullptr) return;
  // A layer that is called several times has its problem once.
  auto& known = *lowering.problems;
  if (std::find(known.begin(), known.end(), error.what()) == known.end()) known.push_back(error.what());
}

Value placeholder(Lowering& lowering, const Json& shape, DType dtype) {
  Ints extents;
  for (const Json& extent : shape.items())
    extents.push_back(extents.empty() ? lowering.batch : extent.is_int() ? extent.as_int() : lowering.unknown_extent);
  return lowering.graph.input("placeholder", {dtype, extents});
}

namespace {

bool is_input_layer(const Json& layer) {
  const Json* name = layer.is_object() ? layer.find("class_name") : nullptr;
  return name != nullptr && name->is_string() && name->as_string() == "InputLayer";
}

// The input of a layer whose predecessor failed, by the shape that the file recorded; none where it did not.
std::vector<Signal> recorded_input(Lowering& lowering, const Json& layer) {
  const Json* build = layer.find("build_config");
  const Json* shape = build != nullptr && build->is_object() ? build->find("input_shape") : nullptr;
  if (shape == nullptr || !shape->is_list() || shape->size() == 0) return {};
  for (const Json& extent : shape->items())
    if (!extent.is_null() && !extent.is_int()) return {};
  return {{placeholder(lowering, *shape, DType::f32), {}}};
}

Outputs sequential(Call& c) {
  const Json& layers = c.config.at("layers");
  if (!layers.is_list()) c.config.invalid("'layers' is a list");
  std::vector<Signal> signals = c.inputs();
  if (signals.size() != 1) c.config.invalid("a Sequential model takes one tensor; got {}", signals.size());
  if (c.arguments.find("mask") != nullptr) signals[0].mask = c.mask();  // inner(x, mask=m)
  LayerKeys keys;
  bool failed = false;
  for (const Json& layer : layers.items()) {
    if (!layer.is_object()) c.config.invalid("a layer is an object; got {}", escape(layer.dump(), 60));
    if (is_input_layer(layer)) {
      if (&layer == &layers.items().front()) signals[0] = adjust_input(c.config, signals[0], input_of_layer(layer));
      continue;
    }
    std::string key = keys.next(layer);
    try {
      if (signals.empty()) {
        resolve(layer);
        signals = recorded_input(c.lowering, layer);
        if (signals.empty()) continue;
      }
      signals = c.child(key, layer, signals).signals;
    } catch (const Error& e) {
      report_problem(c.lowering, e);
      failed = true;
      signals.clear();
    }
  }
  if (failed) fail<Reported>("keras", "{} has problems", c.config.where());
  return signals;
}

// Reached only when a file feeds an input layer, which Keras never writes.
Outputs input_layer(Call& c) { return c.x(); }

}  // namespace

Rows model_layers() {
  static const LayerRow rows[] = {
      {"Sequential", sequential, Masking::own, "layers build_input_shape"},
      {"Functional", functional, Masking::own, "layers input_layers output_layers"},
      {"Model", functional, Masking::own, "layers input_layers output_layers", "legacy name of Functional"},
      {"InputLayer", input_layer, Masking::pass, "batch_shape shape sparse ragged optional type_spec",
       "sparse and ragged inputs are refused"},
  };
  return rows;
}

}  // namespace tutti::keras
