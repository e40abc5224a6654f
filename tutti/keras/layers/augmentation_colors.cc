// Augmentation that leaves pixels where they are: colours, light, blur, and parts that are painted over.
#include <algorithm>
#include <cmath>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/augmentation.h"
#include "tutti/keras/layers/colors.h"
#include "tutti/keras/layers/histogram_equalization.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/layers/windows.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

Range value_range(const Config& config) {
  if (!config.has("value_range")) return {0, 255};
  auto range = config.numbers("value_range");
  if (range.size() != 2 || range[0] == range[1]) config.invalid("'value_range' is two numbers; got {}", config.get("value_range").dump());
  return {range[0], range[1]};
}

Value change_range(Value x, DType dtype, Range from, Range to) {
  if (from == to) return x;
  Value part = (convert(x, dtype) - from.low) / (from.high - from.low);
  return part * (to.high - to.low) + to.low;
}

Range factor_of(const Config& config, const char* key, double lowest) {
  const Json& given = config.get(key);
  if (given.is_number()) return {std::max(-std::abs(given.as_number()), lowest), std::abs(given.as_number())};
  const auto pair = config.numbers(key);
  if (pair.size() != 2) config.invalid("'{}' is one number or two; got {}", key, given.dump());
  return {std::min(pair[0], pair[1]), std::max(pair[0], pair[1])};
}

Value plain_images(const Call& c) { return c.lowering.keras_major == 2 ? convert(image_input(c), c.policy.compute) : image_input(c); }

Value draw(Call& c, const Shape& each, Range range) { return c.uniform(each) * (range.high - range.low) + range.low; }

Value drawn_sign(Call& c, const Shape& each) {
  const Value u = c.uniform(each);
  return select(compare(u, 0.5, Direction::GT), full_like(u, -1), full_like(u, 1));
}

Value draw_by_image(Call& c, Value images, Range range) {
  Ints extents(static_cast<size_t>(images.rank()), 1);
  if (images.rank() == 4) extents[0] = images.extent(0);
  return draw(c, extents, range);
}

Value drawn_bell(Value deviation, int64_t size, Value reach) {
  Graph& graph = deviation.graph();
  const Value distance = iota(graph, {DType::f32, {size}}, 0) - static_cast<double>(size - 1) / 2;
  Value curve = unary(Op::exponential, square(distance) * -0.5 / broadcast_to(square(deviation), {size}));
  if (reach) curve = select(compare(abs(distance), broadcast_to(reach, {size}), Direction::LE), curve, full_like(curve, 0));
  return curve / broadcast_to(sum(curve, {0}, true), {size});
}

Value drawn_changes(Call& c, Value images) {
  const Value share = draw_by_image(c, images, factor_of(c.config, "factor", 0));
  return compare(draw_by_image(c, images, {0, 1}), share, Direction::LT);
}

namespace {

Range sorted(Range range) { return {std::min(range.low, range.high), std::max(range.low, range.high)}; }
Value clamp_to(Value x, Range range) { return clamp(x, range.low, range.high); }

// As the compute dtype, [n, h, w, c]: what `change` makes of them while training.
template <class F>
Outputs changed(Call& c, const F& change) {
  const Value given = convert(image_input(c), c.policy.compute);
  if (!c.draws()) return given;
  const bool first = c.config.channels_first(), single = given.rank() == 3;
  image_axes(given, first);
  const Value y = from_channels_last(change(to_channels_last(single ? expand_dims(given, {0}) : given, first)), first);
  return single ? squeeze(y, {0}) : y;
}

// Keras gives these out as they came where nothing is drawn.
template <class F>
Outputs changed_or_plain(Call& c, const F& change) {
  return c.draws() ? changed(c, change) : Outputs(plain_images(c));
}

void require_colours(const Call& c, Value x) {
  if (x.extent(3) != 3) c.config.invalid("takes images of three channels; got {}", to_string(x.shape()));
}

Value factors(Call& c, Value x, Range range) { return convert(draw_by_image(c, x, range), x.dtype()); }

Value with_probability(Call& c, Value x, Value changed_images) {
  return select(broadcast_to(drawn_changes(c, x), x.shape()), changed_images, x);
}

Value gray_or_same(Value x) { return x.extent(3) == 1 ? x : rgb_to_gray(x); }

Value brighter(Call& c, Value x, const char* key) {
  const Range range = sorted(value_range(c.config));
  return clamp_to(x + factors(c, x, factor_of(c.config, key, -1)) * (range.high - range.low), range);
}

Value contrasted(Call& c, Value x, const char* key) {
  const Json& given = c.config.get(key);
  // One number means both directions in Keras 2, more contrast in Keras 3.
  const bool both = given.is_number() && c.lowering.keras_major == 2;
  const Range factor = both ? Range{given.as_number(), given.as_number()} : factor_of(c.config, key, 0);
  const Value middle = mean(x, {1, 2}, true);
  return clamp_to((x - middle) * factors(c, x, {1 - factor.low, 1 + factor.high}) + middle, value_range(c.config));
}

Value saturated(Call& c, Value x, const char* key) {
  require_colours(c, x);
  const Value hsv = rgb_to_hsv(x), drawn = factors(c, x, factor_of(c.config, key, -1));
  const Value by = drawn / (1.0 - drawn + 1e-7);
  const Value saturation = clamp_to(slice_axis(hsv, 3, 1, 2) * by, sorted(value_range(c.config)));
  return hsv_to_rgb(concatenate({slice_axis(hsv, 3, 0, 1), saturation, slice_axis(hsv, 3, 2, 3)}, 3));
}

Value turned(Call& c, Value x, const char* key) {
  require_colours(c, x);
  const Range range = value_range(c.config), unit{0, 1};
  Ints each(static_cast<size_t>(x.rank()), 1);
  each[0] = x.extent(0);
  const Value sign = convert(drawn_sign(c, each), x.dtype()), by = factors(c, x, factor_of(c.config, key, 0)) * sign * 0.5;
  const Value hsv = rgb_to_hsv(change_range(x, x.dtype(), range, unit));
  Value hue = slice_axis(hsv, 3, 0, 1) + by;
  hue = select(compare(hue, 1, Direction::GT), hue - 1.0, hue);
  hue = select(compare(hue, 0, Direction::LT), hue + 1.0, hue);
  const Value rgb = hsv_to_rgb(concatenate({hue, slice_axis(hsv, 3, 1, 3)}, 3));
  return change_range(clamp_to(rgb, unit), x.dtype(), unit, range);
}

}  // namespace

Outputs random_brightness(Call& c) {
  return changed_or_plain(c, [&](Value x) { return brighter(c, x, "factor"); });
}

Outputs random_contrast(Call& c) {
  return changed_or_plain(c, [&](Value x) { return contrasted(c, x, "factor"); });
}

Outputs random_saturation(Call& c) {
  return changed_or_plain(c, [&](Value x) { return saturated(c, x, "factor"); });
}

Outputs random_hue(Call& c) {
  return changed_or_plain(c, [&](Value x) { return turned(c, x, "factor"); });
}

Outputs random_color_jitter(Call& c) {
  return changed_or_plain(c, [&](Value x) {
    if (c.config.has("brightness_factor")) x = brighter(c, x, "brightness_factor");
    if (c.config.has("contrast_factor")) x = contrasted(c, x, "contrast_factor");
    if (c.config.has("saturation_factor")) x = saturated(c, x, "saturation_factor");
    return c.config.has("hue_factor") ? turned(c, x, "hue_factor") : x;
  });
}

Outputs random_color_degeneration(Call& c) {
  return changed_or_plain(c, [&](Value x) {
    require_colours(c, x);
    const Value by = factors(c, x, factor_of(c.config, "factor", -1));
    return clamp_to(x + (rgb_to_gray(x) - x) * by, sorted(value_range(c.config)));
  });
}

Outputs random_grayscale(Call& c) {
  return changed_or_plain(c, [&](Value x) {
    const Value applies = compare(draw_by_image(c, x, {0, 1}), c.config.number("factor", 0.5), Direction::LT);
    return select(broadcast_to(applies, x.shape()), broadcast_to(gray_or_same(x), x.shape()), x);
  });
}

Outputs random_invert(Call& c) {
  return changed_or_plain(c, [&](Value x) { return with_probability(c, x, value_range(c.config).high - x); });
}

// So many bits of eight.
Outputs random_posterization(Call& c) {
  return changed_or_plain(c, [&](Value x) {
    const Range range = sorted(value_range(c.config)), bits = factor_of(c.config, "factor", 1);
    const Value drawn = bits.low == bits.high ? full_like(draw_by_image(c, x, {0, 1}), bits.low) : floor(draw_by_image(c, x, bits));
    const Value step = convert(unary(Op::exponential, (8.0 - drawn) * std::log(2.0)), x.dtype());
    const Value steps = floor(step + 0.5);  // a power of two
    const Value pixels = floor(clamp_to(change_range(x, x.dtype(), range, byte_range), byte_range));
    return change_range(floor(pixels / steps) * steps, x.dtype(), byte_range, range);
  });
}

Outputs solarization(Call& c) {
  return changed(c, [&](Value x) {
    const Range range = sorted(value_range(c.config));
    const auto number = [&](const char* key) {
      const Range factor = c.config.has(key) ? factor_of(c.config, key, 0) : Range{0, 0};
      return factors(c, x, {factor.low, factor.high * 255});  // the lower end as it is written
    };
    const Value lighter = clamp_to(change_range(x, x.dtype(), range, byte_range) + number("addition_factor"), byte_range);
    const Value dark = compare(lighter, broadcast_to(number("threshold_factor"), x.shape()), Direction::LT);
    return change_range(select(dark, lighter, 255.0 - lighter), x.dtype(), byte_range, range);
  });
}

Outputs random_sharpness(Call& c) {
  return changed(c, [&](Value x) {
    constexpr float a = 1.0f / 13, b = 5.0f / 13;
    const Value window = convert(constant<float>(x.graph(), {3, 3, 1, 1}, {a, a, a, a, b, a, a, a, a}), x.dtype());
    const Value smooth = convolve_depthwise(x, broadcast_to(window, {3, 3, x.extent(3), 1}), {{1, 1}, {}, "same", false});
    const Value by = 1.0 - factors(c, x, factor_of(c.config, "factor", 0)) * 2.0;
    return clamp_to(x + (smooth - x) * by, sorted(value_range(c.config)));
  });
}

// By the colours of the whole batch, as Keras does while training.
Outputs equalization(Call& c) {
  return changed_or_plain(c, [&](Value x) {
    require_whole_batch(c);
    const Range range = sorted(value_range(c.config));
    const Value y =
        equalize_channels(convert(change_range(x, x.dtype(), range, byte_range), DType::f32), c.config.positive("bins", 256, 1 << 16));
    return convert(change_range(y, DType::f32, byte_range, range), x.dtype());
  });
}

// Deviations along both axes are the same for a batch.
Outputs random_gaussian_blur(Call& c) {
  return changed(c, [&](Value x) {
    const Ints size = c.config.ints("kernel_size", 2, {3, 3});  // across and down, as the deviations
    if (size[0] < 1 || size[1] < 1 || size[0] > 1024 || size[1] > 1024)
      c.config.invalid("a window of {} by {} is out of range", size[0], size[1]);
    const Range sigma = c.config.has("sigma") ? factor_of(c.config, "sigma", 0) : Range{0, 1};
    const Value deviations = c.uniform({2}, false) * (sigma.high - sigma.low) + (sigma.low + 1e-6);
    const Value across = drawn_bell(slice_axis(deviations, 0, 0, 1), size[0]), down = drawn_bell(slice_axis(deviations, 0, 1, 2), size[1]);
    const Value window = convert(reshape(down, {size[1], 1, 1, 1}) * reshape(across, {1, size[0], 1, 1}), x.dtype());
    const Value blurred = convolve_depthwise(x, broadcast_to(window, {size[1], size[0], x.extent(3), 1}), {{1, 1}, {}, "same", false});
    return clamp_to(with_probability(c, x, blurred), value_range(c.config));
  });
}

// A rectangle of each image, painted over by a colour or by noise.
Outputs random_erasing(Call& c) {
  return changed(c, [&](Value x) {
    const Range range = value_range(c.config), scale = c.config.has("scale") ? factor_of(c.config, "scale", 0) : Range{0.02, 0.33};
    const auto between = [&](int64_t axis) {
      const auto extent = static_cast<double>(x.extent(axis));
      const Value length = sqrt(draw_by_image(c, x, scale)) * extent, start = draw_by_image(c, x, {0, 1}) * (extent - length);
      const Value place = broadcast_in_dim(iota(x.graph(), {DType::f32, {x.extent(axis)}}, 0), x.shape(), {axis});
      return logical_and(compare(place, broadcast_to(start, x.shape()), Direction::GE),
                         compare(place, broadcast_to(start + length, x.shape()), Direction::LT));
    };
    const Value inside = logical_and(between(2), between(1));
    Value paint;
    if (!c.config.has("fill_value")) {
      paint = c.normal(x.shape()) * range.high;
    } else if (c.config.get("fill_value").is_number()) {
      paint = full(c.graph, {DType::f32, x.shape()}, c.config.number("fill_value"));
    } else {
      const auto colour = c.config.numbers("fill_value");
      if (std::ssize(colour) != x.extent(3)) c.config.invalid("'fill_value' has {} numbers for {} channels", colour.size(), x.extent(3));
      std::vector<float> numbers(colour.begin(), colour.end());
      paint = broadcast_in_dim(constant<float>(c.graph, {x.extent(3)}, numbers), x.shape(), {3});
    }
    return with_probability(c, x, select(inside, convert(clamp_to(paint, range), x.dtype()), x));
  });
}

}  // namespace tutti::keras
