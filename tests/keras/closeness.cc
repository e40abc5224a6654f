#include "tests/keras/closeness.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tutti {
namespace {

// How far beyond what is allowed: at most 1 is close.
double excess(double actual, double expected, Tolerance tolerance) {
  if (std::isnan(actual) && std::isnan(expected)) return 0;
  if (actual == expected) return 0;
  double allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
  double found = std::abs(actual - expected) / allowed;
  return std::isfinite(found) && std::isfinite(expected) ? found : std::numeric_limits<double>::infinity();
}

Ints index_of(const Shape& shape, int64_t position) {
  Ints index;
  for (int64_t stride : shape.strides()) {
    index.push_back(position / stride);
    position %= stride;
  }
  return index;
}

}  // namespace

std::string worst_difference(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
  if (actual.shape() != expected.shape()) {
    return fmt::format("the shape is {}, expected {}", to_string(actual.shape()), to_string(expected.shape()));
  }
  Tensor a = actual.converted(DType::f64), e = expected.converted(DType::f64);
  auto left = a.as<double>(), right = e.as<double>();
  size_t worst = 0, count = 0;
  double most = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    double here = excess(left[i], right[i], tolerance);
    if (here > 1) ++count;
    if (here > most) most = here, worst = i;
  }
  if (count == 0) return "";
  return fmt::format("{} of {} elements differ; worst at {}: {} instead of {}, {:.3g} times what is allowed", count, left.size(),
                     to_string(index_of(actual.shape(), static_cast<int64_t>(worst))), left[worst], right[worst], most);
}

}  // namespace tutti
