// Pooling over windows, over everything, and over as many windows as there are outputs.
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/windows.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

template <int64_t spatial>
Outputs pooled(Call& c, const char* kind) {
  Value x = spatial_input(c, spatial);
  Ints size = c.config.ints("pool_size", spatial);
  Windows windows{.strides = c.config.ints("strides", spatial, size),
                  .padding = c.config.text("padding", "valid"),
                  .channels_first = c.config.channels_first()};
  return pool(x, kind, size, windows);
}

template <int64_t spatial>
Outputs max_pooling(Call& c) {
  return pooled<spatial>(c, "max");
}

template <int64_t spatial>
Outputs average_pooling(Call& c) {
  return pooled<spatial>(c, "average");
}

Ints spatial_axes(const Config& config, int64_t spatial) {
  Ints axes;
  for (int64_t i = 0; i < spatial; ++i) axes.push_back(i + (config.channels_first() ? 2 : 1));
  return axes;
}

template <int64_t spatial>
Outputs global_max_pooling(Call& c) {
  return reduce_max(spatial_input(c, spatial), spatial_axes(c.config, spatial), c.config.flag("keepdims", false));
}

template <int64_t spatial>
Outputs global_average_pooling(Call& c) {
  Value x = spatial_input(c, spatial);
  Ints axes = spatial_axes(c.config, spatial);
  bool keepdims = c.config.flag("keepdims", false);
  if (spatial == 1 && c.mask()) {
    // Steps that are masked count for nothing. mask: [batch, time]
    Value mask = c.mask();
    if (mask.rank() != 2) c.config.invalid("takes a mask [batch, time]; got {}", to_string(mask.shape()));
    Ints extents{mask.extent(0), mask.extent(1)};
    extents.insert(c.config.channels_first() ? extents.begin() + 1 : extents.end(), 1);
    mask = reshape(convert(mask, DType::boolean), extents);
    Value kept = select(mask, x, scalar(c.graph, x.dtype(), 0));
    return sum(kept, axes, keepdims) / sum(convert(mask, x.dtype()), axes, keepdims);
  }
  const bool averages_floats = c.lowering.keras_major >= 3 && !is_float(x.dtype());
  return mean(averages_floats ? convert(x, DType::f32) : x, axes, keepdims);
}

template <int64_t spatial>
Outputs adaptive_max_pooling(Call& c) {
  return adaptive_pool(spatial_input(c, spatial), "max", c.config.ints("output_size", spatial), c.config.channels_first());
}

template <int64_t spatial>
Outputs adaptive_average_pooling(Call& c) {
  return adaptive_pool(spatial_input(c, spatial), "average", c.config.ints("output_size", spatial), c.config.channels_first());
}

}  // namespace

Rows pooling_layers() {
  constexpr std::string_view windowed = "pool_size strides padding data_format";
  constexpr std::string_view global = "data_format keepdims";
  constexpr std::string_view adaptive = "output_size data_format";
  static const LayerRow rows[] = {
      {"MaxPooling1D", max_pooling<1>, Masking::drop, windowed},
      {"MaxPooling2D", max_pooling<2>, Masking::drop, windowed},
      {"MaxPooling3D", max_pooling<3>, Masking::drop, windowed},
      {"AveragePooling1D", average_pooling<1>, Masking::drop, windowed},
      {"AveragePooling2D", average_pooling<2>, Masking::drop, windowed},
      {"AveragePooling3D", average_pooling<3>, Masking::drop, windowed},
      {"GlobalMaxPooling1D", global_max_pooling<1>, Masking::drop, global},
      {"GlobalMaxPooling2D", global_max_pooling<2>, Masking::drop, global},
      {"GlobalMaxPooling3D", global_max_pooling<3>, Masking::drop, global},
      {"GlobalAveragePooling1D", global_average_pooling<1>, Masking::drop, global, "", "mask"},
      {"GlobalAveragePooling2D", global_average_pooling<2>, Masking::drop, global},
      {"GlobalAveragePooling3D", global_average_pooling<3>, Masking::drop, global},
      {"AdaptiveMaxPooling1D", adaptive_max_pooling<1>, Masking::drop, adaptive},
      {"AdaptiveMaxPooling2D", adaptive_max_pooling<2>, Masking::drop, adaptive},
      {"AdaptiveMaxPooling3D", adaptive_max_pooling<3>, Masking::drop, adaptive},
      {"AdaptiveAveragePooling1D", adaptive_average_pooling<1>, Masking::drop, adaptive},
      {"AdaptiveAveragePooling2D", adaptive_average_pooling<2>, Masking::drop, adaptive},
      {"AdaptiveAveragePooling3D", adaptive_average_pooling<3>, Masking::drop, adaptive},
      {"MaxPool1D", max_pooling<1>, Masking::drop, windowed, older_name},
      {"MaxPool2D", max_pooling<2>, Masking::drop, windowed, older_name},
      {"MaxPool3D", max_pooling<3>, Masking::drop, windowed, older_name},
      {"AvgPool1D", average_pooling<1>, Masking::drop, windowed, older_name},
      {"AvgPool2D", average_pooling<2>, Masking::drop, windowed, older_name},
      {"AvgPool3D", average_pooling<3>, Masking::drop, windowed, older_name},
      {"GlobalMaxPool1D", global_max_pooling<1>, Masking::drop, global, older_name},
      {"GlobalMaxPool2D", global_max_pooling<2>, Masking::drop, global, older_name},
      {"GlobalMaxPool3D", global_max_pooling<3>, Masking::drop, global, older_name},
      {"GlobalAvgPool1D", global_average_pooling<1>, Masking::drop, global, older_name, "mask"},
      {"GlobalAvgPool2D", global_average_pooling<2>, Masking::drop, global, older_name},
      {"GlobalAvgPool3D", global_average_pooling<3>, Masking::drop, global, older_name},
  };
  return rows;
}

}  // namespace tutti::keras
