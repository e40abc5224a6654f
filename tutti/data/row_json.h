// Rows of arrays as JSON: nested lists.
#pragma once

#include "tutti/base/json.h"
#include "tutti/base/tensor.h"

namespace tutti {

Json row_json(const Tensor& rows, int64_t row);

}  // namespace tutti
