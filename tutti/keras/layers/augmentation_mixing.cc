// Augmentation that mixes the images of a batch. Inside of a model Keras mixes images only, their labels stay.
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/augmentation.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

void require_whole_batch(const Call& c) {
  if (c.lowering.fit->is_part)
    c.config.unsupported("mixes the samples of a batch, which is computed in parts here; hint: --replicas 1, without small batches");
}

// G. Marsaglia and W. Tsang, A Simple Method for Generating Gamma Variables, 2000. A try fails at one time in twenty; of the eight that are
// drawn the first good one counts.
Value log_gamma_draw(Call& c, int64_t n, Value alpha, bool by_sample) {
  constexpr int64_t tries = 8;
  const Shape all{n, tries};
  const Value d = alpha + 2.0 / 3, normal = c.normal(all, by_sample);
  const Value root = normal / (tutti::sqrt(d) * 3.0) + 1, cube = maximum(root * root * root, 1e-30);
  const Value limit = square(normal) * 0.5 + d - d * cube + d * tutti::log(cube);
  const Value good =
      logical_and(compare(root, 0, Direction::GT), compare(tutti::log(1.0 - c.uniform(all, by_sample)), limit, Direction::LT));
  const Value which = argmax(convert(good, DType::f32), 1, true);
  const Value chosen = reshape(take_along_axis(cube, which, 1), {n});
  return tutti::log(d) + tutti::log(chosen) + tutti::log(1.0 - c.uniform({n}, by_sample)) / alpha;
}

Value beta_draw(Call& c, int64_t n, Value alpha, bool by_sample) {
  const Value first = log_gamma_draw(c, n, alpha, by_sample), second = log_gamma_draw(c, n, alpha, by_sample);
  return logistic(first - second);
}

namespace {

// The images in an order that is drawn.
Value shuffled(Call& c, Value images) {
  require_whole_batch(c);
  return take(images, argsort(c.uniform({images.extent(0)}), 0), 0);
}

// A weight an image, [n, 1, 1, 1].
Value by_image(Value x) { return reshape(x, {x.extent(0), 1, 1, 1}); }

void require_batch(const Call& c, Value images) {
  if (images.rank() != 4) c.config.invalid("mixes batches of images of rank 4; got {}", to_string(images.shape()));
}

}  // namespace

Outputs mix_up(Call& c) {
  if (!c.draws()) return plain_images(c);
  const Value x = convert(image_input(c), c.policy.compute);
  require_batch(c, x);
  const Value alpha = full(c.graph, {DType::f32, {1}}, c.config.number("alpha", 0.2));
  const Value weight = convert(by_image(beta_draw(c, x.extent(0), alpha)), x.dtype());
  return weight * x + (1.0 - weight) * shuffled(c, x);
}

Outputs cut_mix(Call& c) {
  const Value x = convert(image_input(c), c.policy.compute);
  if (!c.draws()) return x;
  require_batch(c, x);
  const ImageAxes axes = image_axes(x, c.config.channels_first());
  const Range factor = factor_of(c.config, "factor", 0);
  const Value alpha = c.uniform({1}, false) * (factor.high - factor.low) + (factor.low + 1e-6);
  const Value part = tutti::sqrt(1.0 - beta_draw(c, x.extent(0), alpha));  // of each side
  const auto inside = [&](int64_t axis) {
    const auto length = static_cast<double>(x.extent(axis));
    const Value size = part * length, begin = c.uniform({x.extent(0)}) * (length - size);
    const Value place = iota(c.graph, {DType::f32, x.shape()}, axis);
    return logical_and(compare(place, by_image(begin), Direction::GE), compare(place, by_image(begin + size), Direction::LT));
  };
  const Value across = inside(axes.width), down = inside(axes.height);
  return select(logical_and(across, down), shuffled(c, x), x);
}

}  // namespace tutti::keras
