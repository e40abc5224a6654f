// Operands of dot_general seen as matrices.
#pragma once

#include <optional>

#include "tutti/base/shape.h"

namespace tutti {

// Some axes of a row-major value taken as one: how many elements, and how far apart. A single element counts as contiguous.
struct Run {
  int64_t count = 1, stride = 1;
};
// Nothing when the elements are not evenly spaced.
std::optional<Run> as_one_axis(const Shape& shape, const Ints& axes);

// The axes of an operand that are neither batch nor contracting.
Ints free_axes(int64_t rank, const Ints& batch, const Ints& contracting);

}  // namespace tutti
