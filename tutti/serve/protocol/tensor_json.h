// Tensors as JSON: nested or flat lists of numbers. Numbers must fit the element type; nothing is allocated before the counts agree.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/json.h"
#include "tutti/base/tensor.h"

namespace tutti::serve {

// A shape from a protocol: at most 16 extents, none negative, at most 2^40 elements. `what` as in "input 'x'", here and below; each throws
// a bad_request that begins with it.
Shape checked_shape(const Ints& extents, std::string_view what);
Ints ints_from_json(const Json& list, std::string_view what);

// `data` is one flat list of all elements, or lists nested as the shape says.
Tensor tensor_from_json(const Json& data, DType dtype, const Ints& shape, std::string_view what);
// The shape is that of the nesting, which must be regular: [[1, 2], [3, 4]] is [2, 2], and 1 is [].
Tensor tensor_from_nested(const Json& data, DType dtype, std::string_view what);

// Floats in their shortest form that reads back the same; NaN, Infinity and -Infinity as Python writes them.
void append_flat(std::string& text, const Tensor& tensor);
void append_nested(std::string& text, const Tensor& tensor);
// The element lists of one row of the first axis: what TF Serving calls an instance.
void append_row(std::string& text, const Tensor& tensor, int64_t row);
// A string in quotes, escaped.
void append_quoted(std::string& text, std::string_view value);

}  // namespace tutti::serve
