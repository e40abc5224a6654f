#include "tutti/data/rows.h"

#include "tutti/base/error.h"

namespace tutti {

Shape with_rows(int64_t count, const Shape& row) {
  Ints extents{count};
  extents.insert(extents.end(), row.begin(), row.end());
  return extents;
}

Shape row_of(const Shape& shape) { return Ints(shape.begin() + 1, shape.end()); }

void check_rows(std::string_view where, const Tensor& rows, const ArraySpec& array) {
  if (rows.dtype() != array.dtype || rows.shape().rank() == 0 || row_of(rows.shape()) != array.row)
    fail<InternalError>(where, "rows of '{}' are {}{}; got {}", array.name, name(array.dtype), to_string(array.row),
                        to_string(rows.type()));
}

}  // namespace tutti
