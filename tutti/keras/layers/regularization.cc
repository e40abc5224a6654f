// Layers that do something while training only. Files of Keras 2 that call them with training=True at inference are refused (lower.cc).
#include <cmath>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/random.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

Value dropped(Call& c, Value x, double rate, const Shape& noise, bool by_sample) {
  if (!c.draws() || rate <= 0) return x;
  if (rate >= 1) return full_like(x, 0);
  const Value kept = compare(c.uniform(noise, by_sample), rate, Direction::GE);
  return select(broadcast_to(kept, x.shape()), x / (1 - rate), full_like(x, 0));
}

namespace {

double rate_of(const Call& c) {
  const double rate = c.config.number("rate");
  if (!(rate >= 0 && rate <= 1)) c.config.invalid("'rate' is between 0 and 1; got {}", rate);
  return rate;
}

// The shape in which elements are kept or dropped together: the input's, 1 along axes that share one draw.
Shape noise_shape(const Call& c, Value x) {
  if (!c.config.has("noise_shape")) return x.shape();
  const Json& given = c.config.get("noise_shape");
  if (!given.is_list() || static_cast<int64_t>(given.size()) != x.rank())
    c.config.invalid("'noise_shape' has an entry for each of {} axes; got {}", x.rank(), given.dump());
  Ints out;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const Json& entry = given[static_cast<size_t>(axis)];
    out.push_back(entry.is_null() ? x.extent(axis) : entry.as_int());
    if (out.back() != 1 && out.back() != x.extent(axis))
      c.config.invalid("'noise_shape' {} does not broadcast to {}", given.dump(), to_string(x.shape()));
  }
  return out;
}

// Whether samples have numbers of their own: not where the config says 1 for the axis of the batch.
bool draws_by_sample(const Call& c) {
  const Json& given = c.config.get("noise_shape");
  return !given.is_list() || given.size() == 0 || !given[0].is_number() || given[0].as_int() != 1;
}

Outputs dropout(Call& c) { return dropped(c, c.x(), rate_of(c), noise_shape(c, c.x()), draws_by_sample(c)); }

// Whole channels.
Outputs spatial_dropout(Call& c) {
  const Value x = c.x();
  Ints noise(static_cast<size_t>(x.rank()), 1);
  noise[0] = x.extent(0);
  const int64_t channels = c.config.has("data_format") && c.config.channels_first() ? 1 : x.rank() - 1;
  noise[static_cast<size_t>(channels)] = x.extent(channels);
  return dropped(c, x, rate_of(c), noise);
}

Outputs gaussian_dropout(Call& c) {
  const Value x = c.x();
  const double rate = rate_of(c);
  if (!c.draws() || rate <= 0) return x;
  return x * convert(c.normal(x.shape()) * std::sqrt(rate / (1 - rate)) + 1, x.dtype());
}

Outputs gaussian_noise(Call& c) {
  const Value x = c.x();
  const double deviation = c.config.number("stddev");
  if (!c.draws() || deviation <= 0) return x;
  return x + convert(c.normal(x.shape()) * deviation, x.dtype());
}

// Keeps mean and variance of selu's outputs.
Outputs alpha_dropout(Call& c) {
  const Value x = c.x();
  const double rate = rate_of(c);
  if (!c.draws() || rate <= 0) return x;
  constexpr double low = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
  const double a = 1 / std::sqrt((1 - rate) * (1 + rate * low * low)), b = -a * low * rate;
  const Value kept = compare(c.uniform(noise_shape(c, x), draws_by_sample(c)), rate, Direction::GE);
  return select(broadcast_to(kept, x.shape()), x, full_like(x, low)) * a + b;
}

Outputs activity_regularization(Call& c) {
  const Value x = c.x();
  if (c.lowering.fit != nullptr)
    c.add_activity(JsonMembers{{"name", "l1_l2"}, {"l1", c.config.number("l1", 0)}, {"l2", c.config.number("l2", 0)}}, x);
  return x;
}

}  // namespace

Rows regularization_layers() {
  static const LayerRow rows[] = {
      {"Dropout", dropout, Masking::pass, "rate noise_shape"},
      {"SpatialDropout1D", spatial_dropout, Masking::pass, "rate noise_shape"},
      {"SpatialDropout2D", spatial_dropout, Masking::pass, "rate noise_shape data_format"},
      {"SpatialDropout3D", spatial_dropout, Masking::pass, "rate noise_shape data_format"},
      {"GaussianDropout", gaussian_dropout, Masking::pass, "rate"},
      {"GaussianNoise", gaussian_noise, Masking::pass, "stddev"},
      {"AlphaDropout", alpha_dropout, Masking::pass, "rate noise_shape"},
      {"ActivityRegularization", activity_regularization, Masking::pass, "l1 l2"},
  };
  return rows;
}

}  // namespace tutti::keras
