// Runs graphs made of constants on the reference device, for tests of what is built from ops.
#pragma once

#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

// The value as the reference device computes it.
Tensor evaluate(Value value);
// Its elements as doubles, row by row.
std::vector<double> numbers(Value value);

}  // namespace tutti
