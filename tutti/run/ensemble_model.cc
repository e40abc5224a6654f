#include "tutti/run/ensemble_model.h"

#include "tutti/base/error.h"
#include "tutti/keras/write.h"
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
    layers.members.push_back({name, model, ensemble.sources()[m]});
  }
  return keras::ensemble_model(layers);
}

keras::Model load_trainable(const std::string& path) {
  return is_manifest(path) ? as_keras_model(*load_manifest(path)) : keras::load(path);
}

}  // namespace tutti
