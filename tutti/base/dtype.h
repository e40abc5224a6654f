// Element types, their names (as printed, and as NumPy and Keras spell them), and the two 16-bit floats as C++ types.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

namespace tutti {

enum class DType : uint8_t { boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64 };

inline constexpr DType all_dtypes[] = {DType::boolean, DType::i8,  DType::i16, DType::i32,  DType::i64, DType::u8, DType::u16,
                                       DType::u32,     DType::u64, DType::f16, DType::bf16, DType::f32, DType::f64};

int64_t byte_size(DType dtype);
std::string_view name(DType dtype);                            // "f32", "i64", "bool"
std::string_view numpy_name(DType dtype);                      // "float32", "int64", "bool"
std::optional<DType> dtype_from_name(std::string_view name);   // the printed names
std::optional<DType> dtype_from_numpy(std::string_view name);  // the NumPy/Keras names

constexpr bool is_float(DType t) { return t >= DType::f16; }
constexpr bool is_integer(DType t) { return t > DType::boolean && t < DType::f16; }
constexpr bool is_signed(DType t) { return (t >= DType::i8 && t <= DType::i64) || is_float(t); }

// IEEE binary16 and bfloat16: stored as bits, computed as float, rounded to nearest even.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
float bfloat_to_float(uint16_t bits);
uint16_t float_to_bfloat(float value);

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(float_to_half(value)) {}
  operator float() const { return half_to_float(bits); }
};

struct BFloat {
  uint16_t bits = 0;
  BFloat() = default;
  explicit BFloat(float value) : bits(float_to_bfloat(value)) {}
  operator float() const { return bfloat_to_float(bits); }
};

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<Half>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<BFloat>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}

// One element to another type, with XLA's meaning and no undefined behaviour: floats to integers truncate and saturate, NaN becomes 0,
// to bool is "not zero".
template <class To, class From>
To convert_element(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat>) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (value != value) return To{0};
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Calls f with a value-initialised T for the C++ type of `dtype`: dispatch(d, [&](auto zero) { using T = decltype(zero); ... }).
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean: return f(bool{});
    case DType::i8: return f(int8_t{});
    case DType::i16: return f(int16_t{});
    case DType::i32: return f(int32_t{});
    case DType::i64: return f(int64_t{});
    case DType::u8: return f(uint8_t{});
    case DType::u16: return f(uint16_t{});
    case DType::u32: return f(uint32_t{});
    case DType::u64: return f(uint64_t{});
    case DType::f16: return f(Half{});
    case DType::bf16: return f(BFloat{});
    case DType::f32: return f(float{});
    case DType::f64: break;
  }
  return f(double{});
}

}  // namespace tutti
