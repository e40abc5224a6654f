// The small words of StableHLO: types, lists of numbers, constants.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/tensor.h"

namespace tutti::xla {

std::string type_text(const Type& type);   // tensor<2x3xf32>
std::string array(const Ints& values);     // array<i64: 1, 2>
std::string literal(const Tensor& value);  // dense<[...]> : tensor<...>, without rounding
std::string number(const std::byte* data, DType dtype);
// The number that a reduction of this kind begins with, and the op that makes one of two.
Tensor identity(const std::string& kind, DType dtype);
std::string_view combining_op(const std::string& kind);
// How two values are compared, as attributes.
std::string comparison(std::string_view direction, DType dtype);

}  // namespace tutti::xla
