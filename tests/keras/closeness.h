// Compares an array with what it should be, element by element.
#pragma once

#include <string>

#include "tutti/base/tensor.h"

namespace tutti {

// |difference| <= absolute + relative * |expected|
struct Tolerance {
  double absolute = 1e-5, relative = 1e-4;
};

// "" when all elements are close, NaN where NaN is expected and the same infinities; else a line on the worst one.
// Dtypes may differ: both are compared as doubles.
std::string worst_difference(const Tensor& actual, const Tensor& expected, Tolerance tolerance);

}  // namespace tutti
