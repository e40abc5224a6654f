// Data to time programs with.
#pragma once

#include <random>

#include "tutti/base/tensor.h"

namespace tutti {

// Normal random floats, zeros for everything else.
Tensor made_up(const Type& type, std::mt19937& random);

}  // namespace tutti
