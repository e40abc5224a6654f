#include "tutti/serve/protocol/tensor_json.h"

#include <charconv>
#include <cmath>

#include "tutti/serve/failure.h"

namespace tutti::serve {

namespace {

constexpr int64_t most_extents = 16;

std::string shown(const Json& value) { return value.is_list() || value.is_object() ? std::string(value.kind()) : escape(value.dump(), 40); }

template <class T>
T element_from(const Json& value, std::string_view what) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.is_bool()) return value.as_bool();
    if (value.is_int() && (value.as_int() == 0 || value.as_int() == 1)) return value.as_int() == 1;
    refuse(FailureKind::bad_request, "{} has elements of type bool; got {}", what, shown(value));
  } else if constexpr (std::is_integral_v<T>) {
    if (value.is_int() && std::in_range<T>(value.as_int())) return static_cast<T>(value.as_int());
    if (value.is_unsigned() && std::in_range<T>(value.as_unsigned())) return static_cast<T>(value.as_unsigned());
    if (value.is_number() && !value.is_int() && !value.is_unsigned()) {
      // A float without fraction is a whole number too, as long as floats are exact.
      constexpr double exact = 1ll << 53;
      const double number = value.as_number();
      if (number == std::floor(number) && number >= std::max(static_cast<double>(std::numeric_limits<T>::min()), -exact) &&
          number < std::min(std::ldexp(1.0, std::numeric_limits<T>::digits), exact))
        return static_cast<T>(number);
      if (std::abs(number) >= exact)
        refuse(FailureKind::bad_request, "{} has elements of type {}; got about {}; hint: such numbers are sent as bytes", what,
               name(dtype_of<T>()), shown(value));
    }
    refuse(FailureKind::bad_request, "{} has elements of type {}; got {}", what, name(dtype_of<T>()), shown(value));
  } else {
    if (!value.is_number()) refuse(FailureKind::bad_request, "{} has elements of type {}; got {}", what, name(dtype_of<T>()), shown(value));
    if constexpr (std::is_same_v<T, double>) return value.as_number();
    return T(static_cast<float>(value.as_number()));
  }
}

// Elements of lists nested as the shape says, in order.
template <class T>
void fill_nested(const Json& data, const Shape& shape, int64_t axis, std::string_view what, T*& out) {
  if (axis == shape.rank()) {
    *out++ = element_from<T>(data, what);
    return;
  }
  if (!data.is_list())
    refuse(FailureKind::bad_request, "{} of shape {} has {} at axis {}, expected a list", what, to_string(shape), shown(data), axis);
  if (static_cast<int64_t>(data.size()) != shape[axis])
    refuse(FailureKind::bad_request, "{} of shape {} has a list of {} at axis {}", what, to_string(shape), data.size(), axis);
  for (const Json& item : data.items()) fill_nested(item, shape, axis + 1, what, out);
}

// How many numbers there are below; a shape that asks for more is refused before it has memory.
uint64_t count_elements(const Json& data) {
  if (!data.is_list()) return 1;
  if (data.size() == 0 || !data[0].is_list()) return data.size();
  uint64_t count = 0;
  for (const Json& item : data.items()) count += count_elements(item);
  return count;
}

template <class T>
void append_element(std::string& text, T value) {
  char buffer[32];
  if constexpr (std::is_same_v<T, bool>) {
    text += value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  } else if constexpr (!std::is_floating_point_v<T>) {
    append_element(text, static_cast<float>(value));
  } else if (!std::isfinite(value)) {
    text += std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
  } else {
    const std::string_view digits(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
    text += digits;
    if (digits.find_first_of(".e") == digits.npos) text += ".0";
  }
}

template <class T>
void append_nested_from(std::string& text, const T*& at, const Shape& shape, int64_t axis) {
  if (axis == shape.rank()) return append_element(text, *at++);
  text += '[';
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0) text += ',';
    append_nested_from(text, at, shape, axis + 1);
  }
  text += ']';
}

}  // namespace

Shape checked_shape(const Ints& extents, std::string_view what) {
  if (static_cast<int64_t>(extents.size()) > most_extents)
    refuse(FailureKind::bad_request, "{} has {} axes, at most {}", what, extents.size(), most_extents);
  int64_t elements = 1;
  for (int64_t extent : extents) {
    if (extent < 0) refuse(FailureKind::bad_request, "{} has the extent {} in its shape", what, extent);
    if (__builtin_mul_overflow(elements, std::max<int64_t>(extent, 1), &elements) || elements > int64_t{1} << 40)
      refuse(FailureKind::bad_request, "{} has a shape of more than 2^40 elements", what);
  }
  return Shape(extents);
}

Ints ints_from_json(const Json& list, std::string_view what) {
  if (!list.is_list()) refuse(FailureKind::bad_request, "{}: the shape must be a list; got {}", what, list.kind());
  Ints out;
  for (const Json& item : list.items()) {
    if (!item.is_int()) refuse(FailureKind::bad_request, "{}: a shape has whole numbers; got {}", what, shown(item));
    out.push_back(item.as_int());
  }
  return out;
}

Tensor tensor_from_json(const Json& data, DType dtype, const Ints& extents, std::string_view what) {
  const Shape shape = checked_shape(extents, what);
  if (!data.is_list()) refuse(FailureKind::bad_request, "{}: data must be a list; got {}", what, data.kind());
  const uint64_t count = count_elements(data);
  if (count != static_cast<uint64_t>(shape.elements()))
    refuse(FailureKind::bad_request, "{} of shape {} has {} elements; got {}", what, to_string(shape), shape.elements(), count);
  Tensor out(dtype, shape);
  const bool flat = data.size() == 0 || !data[0].is_list();
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* at = out.as<T>().data();
    if (!flat) return fill_nested(data, shape, 0, what, at);
    for (const Json& item : data.items()) *at++ = element_from<T>(item, what);
  });
  return out;
}

Tensor tensor_from_nested(const Json& data, DType dtype, std::string_view what) {
  Ints extents;
  for (const Json* at = &data; at->is_list(); at = &(*at)[0]) {
    extents.push_back(static_cast<int64_t>(at->size()));
    if (at->size() == 0) break;
  }
  const Shape shape = checked_shape(extents, what);
  if (count_elements(data) != static_cast<uint64_t>(shape.elements()))
    refuse(FailureKind::bad_request,
           "{}: the lists have {} elements, the first of each would make it {} ({}): all must have the same lengths", what,
           count_elements(data), shape.elements(), to_string(shape));
  Tensor out(dtype, shape);
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* at = out.as<T>().data();
    fill_nested(data, shape, 0, what, at);
  });
  return out;
}

void append_flat(std::string& text, const Tensor& tensor) {
  text += '[';
  dispatch(tensor.dtype(), [&](auto zero) {
    bool first = true;
    for (auto value : tensor.as<decltype(zero)>()) {
      if (!first) text += ',';
      first = false;
      append_element(text, value);
    }
  });
  text += ']';
}

void append_nested(std::string& text, const Tensor& tensor) {
  dispatch(tensor.dtype(), [&](auto zero) {
    const decltype(zero)* at = tensor.as<decltype(zero)>().data();
    append_nested_from(text, at, tensor.shape(), 0);
  });
}

void append_row(std::string& text, const Tensor& tensor, int64_t row) {
  dispatch(tensor.dtype(), [&](auto zero) {
    const int64_t size = tensor.shape()[0] ? tensor.elements() / tensor.shape()[0] : 0;
    const decltype(zero)* at = tensor.as<decltype(zero)>().data() + row * size;
    append_nested_from(text, at, tensor.shape(), 1);
  });
}

void append_quoted(std::string& text, std::string_view value) { text += Json(value).dump(); }

}  // namespace tutti::serve
