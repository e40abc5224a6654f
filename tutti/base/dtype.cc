#include "tutti/base/dtype.h"

#include <bit>
#include <cmath>

namespace tutti {

namespace {
struct Row {
  DType dtype;
  std::string_view name, numpy;
  int bytes;
};
constexpr Row dtypes[] = {
    {DType::boolean, "bool", "bool", 1}, {DType::i8, "i8", "int8", 1},         {DType::i16, "i16", "int16", 2},
    {DType::i32, "i32", "int32", 4},     {DType::i64, "i64", "int64", 8},      {DType::u8, "u8", "uint8", 1},
    {DType::u16, "u16", "uint16", 2},    {DType::u32, "u32", "uint32", 4},     {DType::u64, "u64", "uint64", 8},
    {DType::f16, "f16", "float16", 2},   {DType::bf16, "bf16", "bfloat16", 2}, {DType::f32, "f32", "float32", 4},
    {DType::f64, "f64", "float64", 8},
};
const Row& row(DType dtype) { return dtypes[static_cast<int>(dtype)]; }
}  // namespace

int64_t byte_size(DType dtype) { return row(dtype).bytes; }
std::string_view name(DType dtype) { return row(dtype).name; }
std::string_view numpy_name(DType dtype) { return row(dtype).numpy; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const auto& r : dtypes)
    if (r.name == name) return r.dtype;
  return {};
}

std::optional<DType> dtype_from_numpy(std::string_view name) {
  for (const auto& r : dtypes)
    if (r.numpy == name) return r.dtype;
  return {};
}

float half_to_float(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent == 0) {
    float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

uint16_t float_to_half(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);   // NaN
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds past 65504
  if (magnitude < 0x38800000) {                                              // below 2^-14: subnormal, in units of 2^-24
    float scaled = std::ldexp(std::bit_cast<float>(magnitude), 24);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

float bfloat_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace tutti
