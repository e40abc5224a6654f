#include "tutti/run/series_scale.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tutti/base/error.h"

namespace tutti {

SeriesScale series_scale_of(std::string_view name) {
  if (name == "standard") return SeriesScale::standard;
  if (name == "minmax") return SeriesScale::minmax;
  if (name == "none") return SeriesScale::none;
  fail<InvalidArgument>("series", "a series is scaled by standard, minmax or none; got '{}'", escape(name, 40));
}

ColumnScale fit_scale(std::span<const double> values, SeriesScale kind) {
  if (kind == SeriesScale::none) return {};
  if (kind == SeriesScale::minmax) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return {*least, *most > *least ? *most - *least : 1};
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least == *most) return {*least, 1};  // whose mean is rounded, and whose deviation is that rounding
  // In units in which squares are numbers, whatever the values are; by a power of two, which rounds nothing.
  const int exponent = std::ilogb(std::max(std::abs(*least), std::abs(*most)));
  const double unit = std::abs(exponent) < 400 ? 1 : std::ldexp(1, exponent);
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (double value : values) sum += value / unit;
  const double mean = sum / count;
  for (double value : values) squares += (value / unit - mean) * (value / unit - mean);
  return {mean * unit, std::sqrt(squares / count) * unit};
}

}  // namespace tutti
