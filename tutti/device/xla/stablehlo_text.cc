#include "tutti/device/xla/stablehlo_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace tutti::xla {

namespace {

std::string_view element(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "i1";
    case DType::u8: return "ui8";
    case DType::u16: return "ui16";
    case DType::u32: return "ui32";
    case DType::u64: return "ui64";
    default: return name(dtype);
  }
}

template <class T>
Tensor scalar_of(T value) {
  return Tensor::scalar<T>(value);
}

}  // namespace

std::string type_text(const Type& type) {
  std::string out = "tensor<";
  for (int64_t extent : type.shape) out += fmt::format("{}x", extent);
  return out + std::string(element(type.dtype)) + ">";
}

std::string array(const Ints& values) { return values.empty() ? "array<i64>" : fmt::format("array<i64: {}>", fmt::join(values, ", ")); }

// One element as MLIR reads it back without rounding: floats by their bits.
std::string number(const std::byte* data, DType dtype) {
  uint64_t bits = 0;
  std::memcpy(&bits, data, static_cast<size_t>(byte_size(dtype)));
  if (dtype == DType::boolean) return bits != 0 ? "true" : "false";
  if (is_float(dtype)) return fmt::format("0x{:0{}X}", bits, 2 * byte_size(dtype));
  if (!is_signed(dtype)) return fmt::format("{}", bits);
  return fmt::format("{}", dispatch(dtype, [&](auto zero) {
                       decltype(zero) value;
                       std::memcpy(&value, data, sizeof value);
                       return static_cast<int64_t>(convert_element<int64_t>(value));
                     }));
}

std::string literal(const Tensor& tensor) {
  const auto bytes = tensor.bytes();
  const auto width = static_cast<size_t>(byte_size(tensor.dtype()));
  const auto count = static_cast<size_t>(tensor.elements());
  if (count == 0) return "dense<> : " + type_text(tensor.type());
  bool splat = true;
  for (size_t i = 1; i < count && splat; ++i)
    splat = std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width),
                       bytes.begin() + static_cast<std::ptrdiff_t>(i * width));
  std::string out = "dense<";
  if (splat) return out + number(bytes.data(), tensor.dtype()) + "> : " + type_text(tensor.type());
  // Nested lists, as many brackets as there are axes that begin or end.
  const Shape& shape = tensor.shape();
  for (size_t i = 0; i < count; ++i) {
    int64_t inner = 1, begins = 0, ends = 0;
    for (int64_t axis = shape.rank(); axis-- > 0;) {
      inner *= shape[axis];
      begins += static_cast<int64_t>(i) % inner == 0;
      ends += (static_cast<int64_t>(i) + 1) % inner == 0;
    }
    if (i > 0) out += ", ";
    out += std::string(static_cast<size_t>(begins), '[') + number(bytes.data() + i * width, tensor.dtype()) +
           std::string(static_cast<size_t>(ends), ']');
  }
  return out + "> : " + type_text(tensor.type());
}

Tensor identity(const std::string& kind, DType dtype) {
  return dispatch(dtype, [&](auto zero) -> Tensor {
    using T = decltype(zero);
    using Limits = std::numeric_limits<std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat>, float, T>>;
    if (kind == "add" || kind == "or") return scalar_of(T{});
    if (kind == "multiply") return scalar_of(convert_element<T>(int32_t{1}));
    if constexpr (std::is_same_v<T, bool>) {
      return scalar_of(kind == "min" || kind == "and");
    } else if constexpr (std::is_integral_v<T>) {
      if (kind == "and") return scalar_of(static_cast<T>(~T{}));
      return scalar_of(kind == "max" ? Limits::min() : Limits::max());
    } else {
      return scalar_of(T(kind == "max" ? -Limits::infinity() : Limits::infinity()));
    }
  });
}

std::string_view combining_op(const std::string& kind) {
  return kind == "max" ? "maximum" : kind == "min" ? "minimum" : std::string_view(kind);
}

std::string comparison(std::string_view direction, DType dtype) {
  return fmt::format("comparison_direction = #stablehlo<comparison_direction {}>, compare_type = #stablehlo<comparison_type {}>", direction,
                     is_float(dtype)    ? "FLOAT"
                     : is_signed(dtype) ? "SIGNED"
                                        : "UNSIGNED");
}

}  // namespace tutti::xla
