// Einstein sums of any number of operands: "bij,bjk->bik", ellipses, repeated labels (diagonals) and extents of 1 that broadcast.
#pragma once

#include <string_view>

#include "tutti/graph/build.h"

namespace tutti {

// Without "->" the result has the ellipsis and then, sorted, the labels that occur once. Throws InvalidArgument when the equation is
// malformed or does not fit the operands.
Value einsum(std::string_view equation, const std::vector<Value>& operands);

}  // namespace tutti
