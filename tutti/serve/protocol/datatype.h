// Element types as the protocols spell them: the Open Inference Protocol ("FP32"), and TensorFlow Serving ("DT_FLOAT").
#pragma once

#include <optional>
#include <string_view>

#include "tutti/base/dtype.h"

namespace tutti::serve {

std::string_view v2_name(DType dtype);
// Throws a bad_request that lists the types; `what` is whose type it is, as in "input 'x'".
DType dtype_from_v2(std::string_view name, std::string_view what);
std::string_view tensorflow_name(DType dtype);

}  // namespace tutti::serve
