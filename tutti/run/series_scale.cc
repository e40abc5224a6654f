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
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / count);
  return {mean, deviation > 0 ? deviation : 1};
}

}  // namespace tutti
