// Activations that are layers of their own.
#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

Outputs activation(Call& c) { return activate(c, c.config.get("activation"), c.x()); }

double non_negative(const Config& config, std::string_view key, double otherwise) {
  double value = config.number(key, otherwise);
  if (!(value >= 0)) config.invalid("'{}' is not negative; got {}", key, value);
  return value;
}

Outputs relu_layer(Call& c) {
  std::optional<double> max_value;
  if (c.config.has("max_value")) max_value = non_negative(c.config, "max_value", 0);
  return relu(c.x(), non_negative(c.config, "negative_slope", 0), max_value, non_negative(c.config, "threshold", 0));
}

Outputs leaky_relu_layer(Call& c) { return leaky_relu(c.x(), c.config.number(c.config.has("alpha") ? "alpha" : "negative_slope", 0.3)); }
Outputs elu_layer(Call& c) { return elu(c.x(), c.config.number("alpha", 1)); }
Outputs thresholded_relu(Call& c) { return threshold(c.x(), non_negative(c.config, "theta", 1), 0); }

Outputs prelu(Call& c) {
  Value x = c.x();  // [batch, ...]
  if (&x.graph() != &c.graph) c.config.unsupported("a PReLU inside a recurrent cell is not run; hint: use a LeakyReLU");
  if (x.rank() < 2) c.config.invalid("takes at least rank 2; got {}", to_string(x.shape()));
  Ints extents(x.shape().begin() + 1, x.shape().end());
  auto count = static_cast<int64_t>(extents.size());
  for (int64_t axis : c.config.ints("shared_axes", -1, {})) {
    if (axis <= -count || axis > count) c.config.invalid("'shared_axes' has {} for an input of rank {}", axis, x.rank());
    // Keras writes shape[axis - 1], so a negative axis counts from one further on.
    extents[static_cast<size_t>(axis < 1 ? axis - 1 + count : axis - 1)] = 1;
  }
  Value alpha = c.weight("alpha", extents);
  return relu(x) - alpha * relu(-x);
}

// mask: any dtype, broadcastable to x; true (or above one half) keeps.
Outputs softmax_layer(Call& c) {
  Value x = c.x();
  Ints axes = c.config.ints("axis", -1, {-1});
  const Argument* given = c.arguments.find(1, "mask");
  Value mask = given != nullptr && given->kind == Argument::Kind::tensor ? given->tensor.value : c.mask();
  if (!mask) return softmax(x, axes);
  bool half = x.dtype() == DType::f16;
  if (c.lowering.keras_major < 3) {
    double lowest = half ? -32752 : -1e9;
    if (!c.config.flag("robust_masking", false)) return softmax(x + (1 - convert(mask, x.dtype())) * lowest, axes);
    return softmax(select(mask.dtype() == DType::boolean ? mask : compare(mask, 0.5, Direction::GT), x, full_like(x, lowest)), axes);
  }
  if (mask.dtype() != DType::boolean) mask = compare(mask, 0.5, Direction::GT);
  mask = broadcast_to(mask, x.shape());
  Value y = softmax(select(mask, x, full_like(x, half ? -3e4 : -1e9)), axes);
  return select(mask, y, full_like(y, 0));
}

}  // namespace

Rows activation_layers() {
  static const LayerRow rows[] = {
      {"Activation", activation, Masking::pass, "activation"},
      {"ReLU", relu_layer, Masking::pass, "max_value negative_slope threshold"},
      {"LeakyReLU", leaky_relu_layer, Masking::pass, "negative_slope alpha"},
      {"PReLU", prelu, Masking::pass, "shared_axes", "inside a recurrent cell: refused"},
      {"ELU", elu_layer, Masking::pass, "alpha"},
      {"Softmax", softmax_layer, Masking::pass, "axis robust_masking", "", "mask"},
      {"ThresholdedReLU", thresholded_relu, Masking::pass, "theta", "Keras 2"},
  };
  return rows;
}

}  // namespace tutti::keras
