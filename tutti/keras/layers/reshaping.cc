// Layers that move data without computing: axes, croppings, paddings, repetitions.
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/resample.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

constexpr int64_t largest_factor = int64_t{1} << 20;

void require_rank(const Call& c, Value x, int64_t rank) {
  if (x.rank() != rank) c.config.invalid("takes rank {}; got {}", rank, to_string(x.shape()));
}

int64_t first_spatial_axis(const Call& c) { return c.config.channels_first() ? 2 : 1; }

Outputs flatten_layer(Call& c) {
  Value x = c.x();
  if (x.rank() < 1) c.config.invalid("takes at least rank 1");
  if (x.rank() == 1) return expand_dims(x, {1});
  if (c.config.channels_first()) x = moveaxis(x, {1}, {-1});
  return flatten(x, 1);
}

Outputs reshape_layer(Call& c) {
  Value x = c.x();  // [batch, ...]
  if (x.rank() < 1) c.config.invalid("takes at least rank 1");
  const Json& target = c.config.at("target_shape");
  if (!target.is_list()) c.config.invalid("'target_shape' is a list; got {}", escape(target.dump(), 60));
  Ints extents{x.extent(0)};
  size_t open = 0;  // position of the extent that follows from the others; 0: none
  for (const Json& item : target.items()) {
    bool unknown = item.is_null() || (item.is_int() && item.as_int() == -1);
    if (!unknown && (!item.is_int() || item.as_int() < 0))
      c.config.invalid("'target_shape' holds extents; got {}", escape(target.dump(), 60));
    if (unknown && open != 0) c.config.invalid("'target_shape' leaves more than one extent open; got {}", escape(target.dump(), 60));
    if (unknown) open = extents.size();
    extents.push_back(unknown ? 1 : item.as_int());
  }
  if (open != 0) {
    int64_t known = Shape(Ints(extents.begin() + 1, extents.end())).elements();
    int64_t total = Shape(Ints(x.shape().begin() + 1, x.shape().end())).elements();
    if (known == 0 || total % known != 0) c.config.invalid("{} does not divide into {}", to_string(x.shape()), escape(target.dump(), 60));
    extents[open] = total / known;
  }
  return reshape(x, extents);
}

Outputs permute(Call& c) {
  Value x = c.x();
  Ints permutation = c.config.ints("dims");
  require_rank(c, x, static_cast<int64_t>(permutation.size()) + 1);
  permutation.insert(permutation.begin(), 0);  // the batch stays; transpose refuses a repeated axis
  for (int64_t axis : permutation)
    if (axis < 0) c.config.invalid("'dims' counts axes from 1; got {}", axis);
  return transpose(x, permutation);
}

Outputs repeat_vector(Call& c) {
  Value x = c.x();  // [batch, features]
  require_rank(c, x, 2);
  int64_t n = c.config.integer("n");
  if (n < 1) c.config.invalid("'n' is positive; got {}", n);
  return repeat(expand_dims(x, {1}), n, 1);
}

// Cropping and padding per spatial axis: n, (n, m) or ((low, high), ...). In one dimension (low, high) stands alone.
struct Margins {
  Ints low, high;
};

Margins read_margins(const Call& c, std::string_view key, int64_t spatial, int64_t otherwise) {
  auto count = static_cast<size_t>(spatial);
  const Json& json = c.config.get(key);
  Margins out{Ints(count, otherwise), Ints(count, otherwise)};
  auto extent = [&](const Json& item) {
    if (!item.is_int() || item.as_int() < 0) c.config.invalid("'{}' holds counts; got {}", key, escape(json.dump(), 60));
    return item.as_int();
  };
  auto pair = [&](const Json& item, size_t axis) {
    if (!item.is_list()) {
      out.low[axis] = out.high[axis] = extent(item);
    } else if (item.size() == 2) {
      out.low[axis] = extent(item[0]);
      out.high[axis] = extent(item[1]);
    } else {
      c.config.invalid("'{}' holds pairs; got {}", key, escape(json.dump(), 60));
    }
  };
  if (json.is_null()) return out;
  if (!json.is_list() || spatial == 1) {
    for (size_t axis = 0; axis < count; ++axis) pair(json, axis);
    return out;
  }
  if (json.size() != count) c.config.invalid("'{}' has {} entries; got {}", key, count, escape(json.dump(), 60));
  for (size_t axis = 0; axis < count; ++axis) pair(json[axis], axis);
  return out;
}

template <int64_t spatial>
Outputs cropping(Call& c) {
  Value x = c.x();
  require_rank(c, x, spatial + 2);
  Margins margins = read_margins(c, "cropping", spatial, spatial == 2 ? 0 : 1);
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t axis = first_spatial_axis(c) + i, extent = x.extent(axis);
    int64_t low = margins.low[static_cast<size_t>(i)], high = margins.high[static_cast<size_t>(i)];
    if (low >= extent || high >= extent - low) c.config.invalid("crops {} + {} of {}", low, high, to_string(x.shape()));
    x = slice_axis(x, axis, low, extent - high);
  }
  return x;
}

template <int64_t spatial>
Outputs zero_padding(Call& c) {
  Value x = c.x();
  require_rank(c, x, spatial + 2);
  Margins margins = read_margins(c, "padding", spatial, 1);
  Ints low(spatial + 2, 0), high(spatial + 2, 0);
  for (int64_t i = 0; i < spatial; ++i) {
    auto axis = static_cast<size_t>(first_spatial_axis(c) + i);
    low[axis] = margins.low[static_cast<size_t>(i)];
    high[axis] = margins.high[static_cast<size_t>(i)];
  }
  return pad(x, 0.0, low, high);
}

template <int64_t spatial>
Outputs up_sampling(Call& c) {
  Value x = c.x();
  require_rank(c, x, spatial + 2);
  Ints size = c.config.ints("size", spatial, Ints(spatial, 2));
  for (int64_t factor : size)
    if (factor < 1 || factor > largest_factor) c.config.invalid("'size' is between 1 and {}; got {}", largest_factor, to_string(size));
  std::string interpolation = c.config.text("interpolation", "nearest");
  if (spatial == 2 && interpolation != "nearest") {
    ImageAxes axes = image_axes(x, c.config.channels_first());
    Value y = resample(x, {x.extent(axes.height) * size[0], x.extent(axes.width) * size[1], interpolation}, c.config.channels_first());
    return c.lowering.keras_major == 2 ? y : rounded_to(y, x.dtype());
  }
  for (int64_t i = 0; i < spatial; ++i) x = repeat(x, size[static_cast<size_t>(i)], first_spatial_axis(c) + i);
  return x;
}

}  // namespace

Rows reshaping_layers() {
  static const LayerRow rows[] = {
      {"Flatten", flatten_layer, Masking::drop, "data_format"},
      {"Reshape", reshape_layer, Masking::drop, "target_shape"},
      {"Permute", permute, Masking::drop, "dims"},
      {"RepeatVector", repeat_vector, Masking::drop, "n"},
      {"Cropping1D", cropping<1>, Masking::drop, "cropping"},
      {"Cropping2D", cropping<2>, Masking::drop, "cropping data_format"},
      {"Cropping3D", cropping<3>, Masking::drop, "cropping data_format"},
      {"ZeroPadding1D", zero_padding<1>, Masking::drop, "padding data_format"},
      {"ZeroPadding2D", zero_padding<2>, Masking::drop, "padding data_format"},
      {"ZeroPadding3D", zero_padding<3>, Masking::drop, "padding data_format"},
      {"UpSampling1D", up_sampling<1>, Masking::drop, "size"},
      {"UpSampling2D", up_sampling<2>, Masking::drop, "size data_format interpolation", "gaussian and mitchellcubic (Keras 2): refused"},
      {"UpSampling3D", up_sampling<3>, Masking::drop, "size data_format"},
  };
  return rows;
}

}  // namespace tutti::keras
