#include "tutti/data/row_json.h"

namespace tutti {

namespace {

Json element_json(const Tensor& tensor, int64_t index) {
  Json out;
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T value = tensor.as<T>()[static_cast<size_t>(index)];
    if constexpr (is_float(dtype_of<T>()))
      out = Json(static_cast<double>(value));
    else if constexpr (std::is_same_v<T, bool>)
      out = Json(value);
    else
      out = Json(static_cast<int64_t>(value));
  });
  return out;
}

// Row-major elements from `at` on; the first axis of `shape` is that of the rows.
Json nested(const Tensor& tensor, const Shape& shape, int64_t axis, int64_t& at) {
  if (axis == shape.rank()) return element_json(tensor, at++);
  Json out = Json::list();
  for (int64_t i = 0; i < shape[axis]; ++i) out.push(nested(tensor, shape, axis + 1, at));
  return out;
}

}  // namespace

Json row_json(const Tensor& rows, int64_t row) {
  const int64_t count = rows.shape()[0];
  int64_t at = count == 0 ? 0 : row * (rows.elements() / count);
  return nested(rows, rows.shape(), 1, at);
}

}  // namespace tutti
