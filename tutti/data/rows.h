// Rows of arrays, in which data are read and written: one row a sample.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// How many rows these arrays have, where they stand side by side; throws InvalidArgument when they have unequally many.
int64_t rows_side_by_side(const std::vector<ArraySpec>& arrays, const std::vector<Tensor>& rows);

// Throws InternalError unless `rows` are rows of this array: what a writer is handed.
void check_rows(std::string_view where, const Tensor& rows, const ArraySpec& array);

}  // namespace tutti
