// Normalization: statistics in at least float32, whatever the layer computes in.
#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/lower.h"
#include "tutti/keras/promote.h"

namespace tutti::keras {

namespace {

DType statistics_dtype(Value x) { return result_type({x.dtype(), DType::f32}); }

// The extents of x along `axes`, 1 elsewhere.
Ints broadcast_extents(Value x, const Ints& axes) {
  Ints out(static_cast<size_t>(x.rank()), 1);
  for (int64_t axis : axes) out[static_cast<size_t>(wrap_axis(axis, x.rank()))] = x.extent(wrap_axis(axis, x.rank()));
  return out;
}

Ints other_axes(Value x, const Ints& axes) {
  Ints out;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (!includes(axes, axis)) out.push_back(axis);
  return out;
}

struct Scaling {
  Value gamma, beta;  // absent where the config switches them off
};

// (x - mean) / sqrt(variance + epsilon) * gamma + beta; all broadcast to x.
Value normalized(Value x, Value mean, Value variance, double epsilon, const Scaling& scaling) {
  Value factor = rsqrt(variance + epsilon);
  if (scaling.gamma) factor = factor * scaling.gamma;
  Value offset = -mean * factor;
  if (scaling.beta) offset = offset + scaling.beta;
  return x * factor + offset;
}

struct Moments {
  Value mean, variance;
};

// Over the elements that the mask keeps; mask: x without its last axis, or absent.
Moments moments(Value x, Value mask, const Ints& axes) {
  if (!mask) return {mean(x, axes, true), variance(x, axes, true)};
  constexpr double keras_epsilon = 1e-7;
  Value kept = broadcast_to(expand_dims(convert(mask, DType::boolean), {-1}), x.shape()), zero = full_like(x, 0);
  Value count = sum(convert(kept, x.dtype()), axes, true) + keras_epsilon;
  Value average = sum(select(kept, x, zero), axes, true) / count;
  return {average, sum(square(select(kept, x - average, zero)), axes, true) / count};
}

// Of all samples of the batch, by all who compute a part of it.
Moments moments_of_all(const Call& c, Value x, const Ints& axes) {
  const Fit& fit = *c.lowering.fit;
  if (c.mask()) c.config.unsupported("a mask is not done with batch normalization by the whole batch");
  const auto over_all = [&](Value own) {
    return fit.over_parts(own * convert(fit.share, own.dtype()), c.config.where() + " by the whole batch");
  };
  const Value average = over_all(mean(x, axes, true));
  return {average, over_all(mean(square(x - average), axes, true))};
}

// Batch renormalization: the batch's own moments, corrected towards those of many batches; no gradient flows by the correction.
struct Renormalized {
  Value mean, deviation;
};
Scaling renormalized(const Call& c, const Renormalized& slow, Value mean, Value deviation, const Scaling& scaling) {
  Value r = deviation / slow.deviation, d = (mean - slow.mean) / slow.deviation;
  static const Json none = Json::object();
  const Config clipping(c.config.has("renorm_clipping") ? c.config.at("renorm_clipping") : none, c.config.where());
  if (clipping.has("rmin")) r = maximum(r, clipping.number("rmin"));
  if (clipping.has("rmax")) r = minimum(r, clipping.number("rmax"));
  if (clipping.has("dmax")) d = clamp(d, -clipping.number("dmax"), clipping.number("dmax"));
  r = stop_gradient(r);
  d = stop_gradient(d);
  Scaling out{scaling.gamma ? r * scaling.gamma : r, scaling.gamma ? d * scaling.gamma : d};
  if (scaling.beta) out.beta = out.beta + scaling.beta;
  return out;
}

Outputs batch_normalization(Call& c) {
  Value x = c.x();
  if (c.config.has("virtual_batch_size")) c.config.unsupported("virtual_batch_size is not done");
  Ints axes = wrap_axes(c.config.ints("axis", -1, {-1}), x.rank());
  Ints broadcast_shape = broadcast_extents(x, axes);
  // Keras 2 allows several axes; the weights then have the rank of the input.
  Shape shape = axes.size() == 1 ? Shape{x.extent(axes[0])} : Shape(broadcast_shape);
  DType precise = statistics_dtype(x);
  auto weight = [&](const char* name, bool trainable) {
    return reshape(convert(c.weight(name, shape, {.trainable = trainable, .raw = true}), precise), broadcast_shape);
  };
  Scaling scaling;
  if (c.config.flag("scale", true)) scaling.gamma = weight("gamma", true);
  if (c.config.flag("center", true)) scaling.beta = weight("beta", true);
  Moments used{weight("moving_mean", false), weight("moving_variance", false)};
  bool renorm = c.config.flag("renorm", false);
  if (renorm)
    for (const char* name : {"moving_stddev", "renorm_mean", "renorm_stddev"}) weight(name, false);
  x = convert(x, precise);
  if (c.training() && c.config.flag("trainable", true)) {
    const bool by_all =
        c.lowering.fit != nullptr && c.lowering.fit->is_part && (c.lowering.fit->synchronizes || c.config.flag("synchronized", false));
    used = by_all ? moments_of_all(c, x, other_axes(x, axes)) : moments(x, c.mask(), other_axes(x, axes));
    const double momentum = c.config.number("momentum", 0.99);
    const auto follow = [&](const char* name, Value now, double kept) {
      const Value next = convert(c.latest(name), precise) * kept + reshape(now, shape) * (1 - kept);
      c.assign(name, next);
      return next;
    };
    if (renorm) {
      if (!c.draws()) c.config.unsupported("renorm with training=True at inference is not done");
      const double epsilon = c.config.number("epsilon", 1e-3);
      const Value deviation = sqrt(used.variance + epsilon);
      scaling = renormalized(c,
                             {reshape(convert(c.latest("renorm_mean"), precise), broadcast_shape),
                              maximum(reshape(convert(c.latest("renorm_stddev"), precise), broadcast_shape), std::sqrt(epsilon))},
                             used.mean, deviation, scaling);
      const double slowly = c.config.number("renorm_momentum", 0.99);
      follow("renorm_mean", used.mean, slowly);
      follow("renorm_stddev", deviation, slowly);
      follow("moving_mean", used.mean, momentum);
      c.assign("moving_variance", maximum(square(follow("moving_stddev", deviation, momentum)) - epsilon, 0.0));
    } else if (c.draws()) {
      follow("moving_mean", used.mean, momentum);
      follow("moving_variance", used.variance, momentum);
    }
  }
  return convert(normalized(x, used.mean, used.variance, c.config.number("epsilon", 1e-3), scaling), c.policy.compute);
}

Outputs layer_normalization(Call& c) {
  bool keras3 = c.lowering.keras_major >= 3;
  Value x = keras3 ? c.uncast_x() : c.x();
  DType dtype = x.dtype();
  Ints axes = c.config.ints("axis", -1, {-1});
  // The weights have the axes in this order; Keras 3 sorts before it resolves negative ones.
  if (keras3) std::sort(axes.begin(), axes.end());
  axes = wrap_axes(axes, x.rank());
  Ints extents;
  for (int64_t axis : axes) extents.push_back(x.extent(axis));
  Ints broadcast_shape = broadcast_extents(x, axes);
  x = convert(x, statistics_dtype(x));
  auto weight = [&](const char* name) { return reshape(convert(c.weight(name, extents, {.raw = true}), x.dtype()), broadcast_shape); };
  bool rms = c.config.flag("rms_scaling", false);
  double epsilon = c.config.number("epsilon", 1e-3);
  Scaling scaling;
  if (c.config.flag("scale", true) || rms) scaling.gamma = weight("gamma");
  if (c.config.flag("center", true) && !rms) scaling.beta = weight("beta");
  Value y = rms ? x * rsqrt(variance(x, axes, true) + epsilon) * scaling.gamma
                : normalized(x, mean(x, axes, true), variance(x, axes, true), epsilon, scaling);
  return convert(convert(y, dtype), c.policy.compute);
}

Outputs rms_normalization(Call& c) {
  Value x = c.x();
  Ints axes = c.config.ints("axis", -1, {-1});
  std::sort(axes.begin(), axes.end());
  axes = wrap_axes(axes, x.rank());
  Ints extents;
  for (int64_t axis : axes) extents.push_back(x.extent(axis));
  Value precise = convert(x, statistics_dtype(x));
  Value scale = convert(c.weight("scale", extents), precise.dtype());
  Value y = precise * rsqrt(mean(square(precise), axes, true) + c.config.number("epsilon", 1e-6)) * scale;
  if (!(y.shape() == x.shape())) c.config.invalid("scale {} does not fit {}", to_string(scale.shape()), to_string(x.shape()));
  return convert(y, x.dtype());
}

Outputs group_normalization(Call& c) {
  bool keras3 = c.lowering.keras_major >= 3;
  Value x = keras3 ? c.uncast_x() : c.x();
  if (!keras3 && c.mask()) c.config.unsupported("a mask on a GroupNormalization of Keras 2 is not done");
  int64_t axis = wrap_axis(c.config.integer("axis", -1), x.rank()), channels = x.extent(axis);
  int64_t groups = c.config.integer("groups", 32);
  if (groups == -1) groups = channels;
  if (axis == 0 || groups < 1 || channels % groups != 0)
    c.config.invalid("{} groups do not divide axis {} of {}", groups, axis, to_string(x.shape()));
  Ints grouped = x.shape().extents(), broadcast_shape(static_cast<size_t>(x.rank()), 1);
  for (Ints* extents : {&grouped, &broadcast_shape}) {
    (*extents)[static_cast<size_t>(axis)] = channels / groups;
    extents->insert(extents->begin() + axis, groups);
  }
  Value y = reshape(convert(x, statistics_dtype(x)), grouped);
  auto weight = [&](const char* name) { return reshape(convert(c.weight(name, {channels}, {.raw = true}), y.dtype()), broadcast_shape); };
  Scaling scaling;
  if (c.config.flag("scale", true)) scaling.gamma = weight("gamma");
  if (c.config.flag("center", true)) scaling.beta = weight("beta");
  Ints axes = other_axes(y, {0, axis});
  y = normalized(y, mean(y, axes, true), variance(y, axes, true), c.config.number("epsilon", 1e-3), scaling);
  return convert(convert(reshape(y, x.shape()), x.dtype()), c.policy.compute);
}

Outputs unit_normalization(Call& c) {
  Value x = c.x();
  Value inverse = rsqrt(sum(square(x), c.config.ints("axis", -1, {-1}), true));
  return x * minimum(inverse, c.lowering.keras_major >= 3 ? 1e12 : 1e6);
}

Variable* wrapped_kernel(Call& c, const Json& layer) {
  for (const auto& variable : c.lowering.scope_of(layer, c.scope(), "layer").variables())
    if (variable->name == "kernel" || variable->name == "embeddings") return variable.get();
  return nullptr;
}

// The wrapped layer sees its kernel divided by the largest singular value, which a vector that is kept from step to step finds by power
// iteration. The kernel itself stays as it is: on JAX what a layer assigns to a trained variable lasts for the step only.
void normalize_kernel(Call& c, Variable& kernel) {
  const Value raw = c.lowering.parameter(kernel);
  const int64_t columns = raw.extent(-1);
  const Value weights = reshape(raw, {raw.shape().elements() / std::max<int64_t>(columns, 1), columns});
  const auto normed = [](Value x) { return x * minimum(rsqrt(sum(square(x), all_axes(x), true)), 1e7); };
  Value u = c.latest("vector_u"), v;
  for (int64_t i = 0; i < c.config.integer("power_iterations", 1); ++i) {
    v = normed(matmul(u, transpose(weights, {1, 0})));
    u = normed(matmul(v, weights));
  }
  u = stop_gradient(u);
  const Value sigma = reshape(matmul(matmul(stop_gradient(v), weights), transpose(u, {1, 0})), {});
  const Value all_zero = compare(reduce_max(abs(raw), all_axes(raw)), 0, Direction::EQ);
  const auto unless_zero = [&](Value now, Value before) { return select(broadcast_in_dim(all_zero, now.shape(), {}), before, now); };
  const Value divisor = select(all_zero, scalar(c.graph, raw.dtype(), 1), sigma);
  c.assign("vector_u", unless_zero(u, c.latest("vector_u")));
  c.lowering.see_instead(kernel, raw / divisor);
}

Outputs spectral_normalization(Call& c) {
  if (c.training() && !c.draws()) c.config.unsupported("training=True in a call changes the weights, which is not done");
  if (const int64_t iterations = c.config.integer("power_iterations", 1); iterations < 1 || iterations > 1000)
    c.config.invalid("'power_iterations' is positive, and at most 1000 here; got {}", iterations);
  const Json& layer = c.config.at("layer");
  Value x = c.x();
  if (c.draws()) normalize_kernel(c, *wrapped_kernel(c, layer));
  Signal out = c.child("layer", layer, {{x, c.mask()}}).signals.at(0);
  const Variable* kernel = wrapped_kernel(c, layer);
  if (kernel == nullptr || kernel->type.shape.rank() < 1) c.config.unsupported("the wrapped layer has no kernel");
  c.repeat_weight(kernel->name, kernel->type);
  c.weight("vector_u", {1, kernel->type.shape[kernel->type.shape.rank() - 1]},
           {.trainable = false, .raw = true, .dtype = kernel->type.dtype});
  return c.lowering.keras_major >= 3 ? convert(out.value, x.dtype()) : out.value;
}

}  // namespace

Rows normalization_layers() {
  static const LayerRow rows[] = {
      {"BatchNormalization", batch_normalization, Masking::pass,
       "axis momentum epsilon center scale synchronized renorm renorm_clipping renorm_momentum fused virtual_batch_size",
       "virtual_batch_size (Keras 2): refused", usual_call, true},
      {"SyncBatchNormalization", batch_normalization, Masking::pass,
       "axis momentum epsilon center scale synchronized renorm renorm_clipping renorm_momentum fused virtual_batch_size", "Keras 2",
       usual_call, true},
      {"LayerNormalization", layer_normalization, Masking::pass, "axis epsilon center scale rms_scaling"},
      {"RMSNormalization", rms_normalization, Masking::drop, "axis epsilon"},
      {"GroupNormalization", group_normalization, Masking::pass, "groups axis epsilon center scale"},
      {"UnitNormalization", unit_normalization, Masking::pass, "axis"},
      {"SpectralNormalization", spectral_normalization, Masking::drop, "layer power_iterations",
       "training=True in a call (Keras 2): refused", usual_call, true},
  };
  return rows;
}

}  // namespace tutti::keras
