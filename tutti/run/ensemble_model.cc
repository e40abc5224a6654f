#include "tutti/run/ensemble_model.h"

#include "tutti/base/error.h"
#include "tutti/keras/write.h"
#include "tutti/run/explain.h"
#include "tutti/run/manifest.h"

namespace tutti {

namespace {

keras::MergeLayer merge_layer(const Reduction& reduction) {
  switch (reduction.kind) {
    case Reduce::mean: return keras::MergeLayer::average;
    case Reduce::min: return keras::MergeLayer::minimum;
    case Reduce::max: return keras::MergeLayer::maximum;
    case Reduce::sum: return keras::MergeLayer::add;
    default:
      fail<Unsupported>("ensemble",
                        "Keras has layers for mean, weighted mean, min, max and sum; got {}; hint: a manifest (-o X.toml) predicts it",
                        reduction.text());
  }
}

// Keras's layers broadcast outputs that differ by axes of 1 (to [3, 3] of [3] and [3, 1]), where an ensemble reshapes them.
void require_one_shape(const Ensemble& ensemble) {
  constexpr int64_t batch = 2;
  const std::vector<Shape> given = shapes_with(ensemble, batch, ensemble.probe_extent());
  std::vector<Shape> first;
  for (size_t m = 0; m < ensemble.members().size(); ++m) {
    const auto& [name, model] = ensemble.members()[m];
    keras::LowerOptions options{batch, {}, nullptr};
    for (size_t source : ensemble.sources()[m])
      if (!given.empty()) options.input_shapes.push_back(given[source]);
    const Graph graph = model->lower(options);
    for (size_t i = 0; i < ensemble.places()[m].size(); ++i) {
      const Shape shape = graph.type(graph.outputs()[ensemble.places()[m][i]].value).shape;
      if (shape.rank() == 0)
        fail<Unsupported>("ensemble", "member '{}' gives a single number, which no merging layer of Keras takes; hint: -o X.toml", name);
      if (m == 0) first.push_back(shape);
      if (shape != first[i])
        fail<Unsupported>("ensemble", "member '{}' gives {}, the first member {}: a .keras file would need layers between; hint: -o X.toml",
                          name, to_string(shape), to_string(first[i]));
    }
  }
}

}  // namespace

void require_layers(const EnsembleOptions& options) {
  for (const Reduction& reduction : options.reductions) merge_layer(reduction);
  if (options.ignore_nan) fail<Unsupported>("ensemble", "Keras has no layer that ignores NaN; hint: a manifest (-o X.toml) predicts it");
}

keras::Model as_keras_model(const Ensemble& ensemble) {
  require_layers(ensemble.options());
  keras::EnsembleLayers layers;
  for (const Reduction& reduction : ensemble.options().reductions) layers.outputs.push_back({reduction.name(), merge_layer(reduction)});
  layers.weights = ensemble.options().weights;
  layers.inputs = ensemble.inputs();
  std::vector<std::unique_ptr<keras::Model>> inner;  // members that are ensembles themselves
  for (size_t m = 0; m < ensemble.members().size(); ++m) {
    const auto& [name, any] = ensemble.members()[m];
    const auto* model = dynamic_cast<const keras::Model*>(any.get());
    if (const auto* members = dynamic_cast<const Ensemble*>(any.get()))
      model = inner.emplace_back(std::make_unique<keras::Model>(as_keras_model(*members))).get();
    if (model == nullptr) fail<InternalError>("ensemble", "member '{}' is neither a model nor an ensemble", name);
    layers.members.push_back({name, model, ensemble.sources()[m], ensemble.places()[m]});
  }
  keras::Model out = keras::ensemble_model(layers);
  require_one_shape(ensemble);
  return out;
}

keras::Model load_trainable(const std::string& path) {
  return is_manifest(path) ? as_keras_model(*load_manifest(path)) : keras::load(path);
}

}  // namespace tutti
