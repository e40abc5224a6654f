// Numbers before the first real layer: Rescaling, Normalization, and Pipeline, which chains such layers.
#include <algorithm>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/models.h"
#include "tutti/keras/layers/operations/operand.h"

namespace tutti::keras {

namespace {

// A number or an array of the config, in the compute dtype.
Value numbers(Call& c, std::string_view key) {
  const Json& json = c.config.at(key);
  if (json.is_number()) return scalar(c.graph, c.policy.compute, json.as_number());
  return convert(c.graph.constant(read_array(c.config, json, key)), c.policy.compute);
}

Outputs rescaling(Call& c) {
  Value y = convert(c.x(), c.policy.compute) * numbers(c, "scale");
  return c.config.has("offset") ? y + numbers(c, "offset") : y;
}

// The axes that have statistics of their own, in order.
Ints kept_axes(const Config& config, int64_t rank) {
  Ints axes = config.ints("axis", -1, {});
  for (int64_t& axis : axes) axis = wrapped_axis(config, axis, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end() || (!axes.empty() && axes[0] == 0))
    config.invalid("'axis' holds axes behind the batch, each once; got {}", config.get("axis").dump());
  return axes;
}

// A statistic from the config: its last axes belong to the last kept ones.
Value given_statistic(Call& c, std::string_view key, const Ints& kept, int64_t rank) {
  Value values = numbers(c, key);
  if (values.rank() > static_cast<int64_t>(kept.size()))
    c.config.invalid("'{}' has as many axes as 'axis', or fewer; got {}", key, to_string(values.shape()));
  Ints extents(static_cast<size_t>(rank), 1);
  for (int64_t i = 1; i <= values.rank(); ++i) extents[static_cast<size_t>(kept[kept.size() - static_cast<size_t>(i)])] = values.extent(-i);
  return reshape(values, extents);
}

Outputs normalization(Call& c) {
  Value x = convert(c.x(), c.policy.compute), mean, variance;
  Ints kept = kept_axes(c.config, x.rank());
  if (c.config.has("mean") || c.config.has("variance")) {
    mean = given_statistic(c, "mean", kept, x.rank());
    variance = given_statistic(c, "variance", kept, x.rank());
  } else {
    Ints own, broadcast(static_cast<size_t>(x.rank()), 1);
    for (int64_t axis : kept) {
      own.push_back(x.extent(axis));
      broadcast[static_cast<size_t>(axis)] = x.extent(axis);
    }
    mean = reshape(c.weight("mean", own, {.trainable = false}), broadcast);
    variance = reshape(c.weight("variance", own, {.trainable = false}), broadcast);
    c.weight("count", {}, {.trainable = false, .raw = true, .dtype = DType::i64});
  }
  Value deviation = maximum(sqrt(variance), 1e-7);
  return c.config.flag("invert", false) ? mean + x * deviation : (x - mean) / deviation;
}

Outputs pipeline(Call& c) {
  const Json& layers = c.config.at("layers");
  if (!layers.is_list()) c.config.invalid("'layers' is a list");
  std::vector<Signal> signals = c.inputs();
  LayerKeys keys;
  for (const Json& layer : layers.items()) {
    if (!layer.is_object()) c.config.invalid("a layer is an object; got {}", escape(layer.dump(), 60));
    signals = c.child(keys.next(layer), layer, signals).signals;
  }
  return signals;
}

}  // namespace

Rows preprocessing_layers() {
  static const LayerRow rows[] = {
      {"Rescaling", rescaling, Masking::pass, "scale offset"},
      {"Normalization", normalization, Masking::pass, "axis mean variance invert"},
      {"Pipeline", pipeline, Masking::drop, "layers"},
  };
  return rows;
}

}  // namespace tutti::keras
