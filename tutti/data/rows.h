// Rows of arrays, in which data are read and written: one row a sample.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/tensor.h"

namespace tutti {

// An array of any number of rows.
struct ArraySpec {
  std::string name;
  DType dtype = DType::f32;
  Shape row;
};

Shape with_rows(int64_t count, const Shape& row);  // [count, row...]
Shape row_of(const Shape& shape);                  // without the first extent

// Throws InternalError unless `rows` are rows of this array: what a writer is handed.
void check_rows(std::string_view where, const Tensor& rows, const ArraySpec& array);

}  // namespace tutti
