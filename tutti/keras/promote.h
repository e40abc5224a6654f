// Keras's dtype promotion (keras.backend.result_type): which dtype an operation on several computes in. Python's own int and float are
// weak: they give way to a tensor of their kind. 64-bit ints and floats stay as they are, as under the TensorFlow backend.
#pragma once

#include <initializer_list>
#include <span>

#include "tutti/base/dtype.h"

namespace tutti::keras {

// A dtype, or Python's int (weak i32) or float (weak f32).
struct PromotedType {
  DType dtype = DType::f32;
  bool weak = false;
  PromotedType(DType dtype_, bool weak_ = false) : dtype(dtype_), weak(weak_) {}
};
inline const PromotedType python_int{DType::i32, true};
inline const PromotedType python_float{DType::f32, true};

DType result_type(std::span<const PromotedType> types);
DType result_type(std::initializer_list<PromotedType> types);

// What functions on real numbers compute in: floats as they are, anything else as float32.
DType float_type(DType dtype);
// What sums and products of many elements are: small integers and bool become 32 bits wide.
DType sum_type(DType dtype);

}  // namespace tutti::keras
