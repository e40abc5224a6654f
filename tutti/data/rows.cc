#include "tutti/data/rows.h"

#include "tutti/base/error.h"

namespace tutti {

Shape with_rows(int64_t count, const Shape& row) {
  Ints extents{count};
  extents.insert(extents.end(), row.begin(), row.end());
  return extents;
}

Shape row_of(const Shape& shape) { return Ints(shape.begin() + 1, shape.end()); }

int64_t rows_side_by_side(const std::vector<ArraySpec>& arrays, const std::vector<Tensor>& rows) {
  int64_t count = rows.at(0).shape()[0];
  for (size_t i = 1; i < arrays.size(); ++i)
    if (int64_t other = rows.at(i).shape()[0]; other != count)
      fail<InvalidArgument>("output", "'{}' has {} rows and '{}' {}, so they cannot stand side by side; hint: write an .npz",
                            arrays[0].name, count, arrays[i].name, other);
  return count;
}

void check_rows(std::string_view where, const Tensor& rows, const ArraySpec& array) {
  if (rows.dtype() != array.dtype || rows.shape().rank() == 0 || row_of(rows.shape()) != array.row)
    fail<InternalError>(where, "rows of '{}' are {}{}; got {}", array.name, name(array.dtype), to_string(array.row),
                        to_string(rows.type()));
}

}  // namespace tutti
