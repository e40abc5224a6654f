// Columns of a series in units that a model can work with.
#pragma once

#include <span>
#include <string_view>

namespace tutti {

enum class SeriesScale { standard, minmax, none };
SeriesScale series_scale_of(std::string_view name);  // throws InvalidArgument for other names

// scaled = (value - shift) / factor
struct ColumnScale {
  double shift = 0, factor = 1;
  float forward(double value) const { return static_cast<float>((value - shift) / factor); }
  double back(float value) const { return static_cast<double>(value) * factor + shift; }
};

// A column without any spread keeps its unit.
ColumnScale fit_scale(std::span<const double> values, SeriesScale kind);

}  // namespace tutti
