// Augmentation that picks among other layers: which of them is drawn for a batch, what they do for each image.
#include <span>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/augmentation.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

struct Choice {
  const char* name;
  Outputs (*function)(Call&);
};
// Those of colours last: AugMix can do without them.
constexpr Choice choices[] = {
    {"random_shear", random_shear},
    {"random_translation", random_translation},
    {"random_rotation", random_rotation},
    {"solarization", solarization},
    {"random_posterization", random_posterization},
    {"auto_contrast", auto_contrast},
    {"equalization", equalization},
    {"random_brightness", random_brightness},
    {"random_color_degeneration", random_color_degeneration},
    {"random_contrast", random_contrast},
    {"random_sharpness", random_sharpness},
};
constexpr size_t without_colours = 7;

// The layers that are picked from, with the options that the one that picks gives them.
class Picker {
 public:
  Picker(Call& c, size_t count) : c_(c), choices_(std::span(choices).first(count)) {
    const Range factor = factor_of(c.config, "factor", 0), range = value_range(c.config);
    const Json both = JsonList{factor.low, factor.high};
    JsonMembers members{{"value_range", JsonList{range.low, range.high}}, {"interpolation", c.config.text("interpolation", "bilinear")}};
    if (c.config.has("data_format")) members.emplace_back("data_format", c.config.get("data_format"));
    bits_ = members;
    bits_.set("factor", std::max<int64_t>(1, static_cast<int64_t>(8 * factor.high)));
    for (const char* key : {"factor", "x_factor", "y_factor", "height_factor", "width_factor", "addition_factor", "threshold_factor"})
      members.emplace_back(key, both);
    options_ = members;
  }

  // So many numbers of layers, f32 [count]; `idle` of them more than there are layers.
  Value draw(int64_t count, int64_t idle) { return floor(c_.uniform({count}, false) * static_cast<double>(std::ssize(choices_) + idle)); }

  // What the layer number `which`, [1], makes of the images; if there is none, they stay as they are.
  Value pick(Value images, Value which) {
    Value out = images;
    for (size_t i = 0; i < choices_.size(); ++i) {
      const Choice& one = choices_[i];
      const Json& options = one.function == random_posterization ? bits_ : options_;
      const Value changed = c_.child(one.name, one.name, options, {{images, {}}}, one.function).signals[0].value;
      const Value chosen = reshape(compare(which, static_cast<double>(i), Direction::EQ), Ints(static_cast<size_t>(images.rank()), 1));
      out = select(broadcast_to(chosen, images.shape()), convert(changed, images.dtype()), out);
    }
    return out;
  }

 private:
  Call& c_;
  std::span<const Choice> choices_;
  Json options_, bits_;
};

constexpr int64_t most_picks = 32;

}  // namespace

// A layer that is picked twice does the same to an image both times, as in Keras.
Outputs rand_augment(Call& c) {
  Value x = convert(image_input(c), c.policy.compute);
  if (!c.draws()) return x;
  Picker picker(c, std::size(choices));
  const int64_t count = c.config.integer("num_ops", 2);
  if (count < 0 || count > most_picks) c.config.invalid("'num_ops' is from 0 to {}; got {}", most_picks, count);
  if (count == 0) return x;
  const Value which = picker.draw(count, 0);
  const uint64_t first = c.lowering.fit->streams;
  for (int64_t i = 0; i < count; ++i) {
    c.lowering.fit->streams = first;
    x = picker.pick(x, slice_axis(which, 0, i, i + 1));
  }
  return x;
}

Outputs aug_mix(Call& c) {
  const Value x = convert(image_input(c), c.policy.compute);
  if (!c.draws()) return x;
  Picker picker(c, c.config.flag("all_ops", true) ? std::size(choices) : without_colours);
  const int64_t chains = c.config.positive("num_chains", 3, most_picks), depth = c.config.positive("chain_depth", 3, most_picks);
  if (chains * depth > most_picks)
    c.config.unsupported("{} chains of {} layers are not done; at most {} in all", chains, depth, most_picks);
  const Value alpha = full(c.graph, {DType::f32, {1}}, c.config.number("alpha", 1));
  const Value shares = softmax(log_gamma_draw(c, chains, alpha, false), {0});  // with Dirichlet's distribution
  const auto share = [&](Value numbers, int64_t i) {
    return convert(reshape(slice_axis(numbers, 0, i, i + 1), Ints(static_cast<size_t>(x.rank()), 1)), x.dtype());
  };
  Value mixed = full_like(x, 0);
  for (int64_t chain = 0; chain < chains; ++chain) {
    Value y = x;
    for (int64_t i = 0; i < depth; ++i) y = picker.pick(y, picker.draw(1, 1));
    mixed = mixed + y * share(shares, chain);
  }
  const Value kept = share(beta_draw(c, 1, alpha, false), 0);
  const Range range = value_range(c.config);
  return clamp(kept * x + (1.0 - kept) * mixed, range.low, range.high);
}

}  // namespace tutti::keras
