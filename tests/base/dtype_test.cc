#include "tutti/base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace tutti {

namespace {

// The definition of a small float: exponent bits, fraction bits, and nothing clever.
struct Format {
  int exponent_bits, fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t infinity() const { return ((1u << exponent_bits) - 1) << fraction_bits; }

  double value(uint32_t bits) const {
    uint32_t exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1), fraction = bits & ((1u << fraction_bits) - 1);
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == (1u << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias() - fraction_bits);
    return sign * std::ldexp(fraction + (1u << fraction_bits), static_cast<int>(exponent) - bias() - fraction_bits);
  }
};
constexpr Format half{5, 10}, bfloat{8, 7};

// Between two neighbours everything below the middle goes down, everything above goes up, and the middle to the even one: checked at
// the middle and next to it, for every pair, this fixes every float.
void expect_rounding(const Format& format, uint16_t (*round)(float)) {
  for (uint32_t sign : {0u, 0x8000u})
    for (uint32_t bits = 0; bits < format.infinity(); ++bits) {
      double low = format.value(bits | sign);
      double high = bits + 1 == format.infinity() ? 2 * low - format.value((bits - 1) | sign) : format.value((bits + 1) | sign);
      auto middle = static_cast<float>((low + high) / 2);
      if (static_cast<double>(middle) != (low + high) / 2) continue;  // below the smallest float: nothing lies there
      uint32_t even = bits % 2 == 0 ? bits : bits + 1;
      ASSERT_EQ(round(static_cast<float>(low)), bits | sign);
      ASSERT_EQ(round(middle), even | sign) << middle;
      ASSERT_EQ(round(std::nextafter(middle, static_cast<float>(low))), bits | sign) << middle;
      ASSERT_EQ(round(std::nextafter(middle, sign ? -INFINITY : INFINITY)), (bits + 1) | sign) << middle;
    }
}

TEST(dtype, every_half_has_the_value_of_the_definition) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(half.value(bits))) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      ASSERT_EQ(value, half.value(bits)) << bits;
      ASSERT_EQ(std::signbit(value), bits >> 15 == 1);
      ASSERT_EQ(float_to_half(value), bits);
    }
  }
}

TEST(dtype, every_bfloat_has_the_value_of_the_definition) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = bfloat_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(bfloat.value(bits))) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(value))));
    } else {
      ASSERT_EQ(value, bfloat.value(bits)) << bits;
      ASSERT_EQ(float_to_bfloat(value), bits);
    }
  }
}

TEST(dtype, floats_round_to_the_nearest_half_and_ties_to_even) { expect_rounding(half, float_to_half); }
TEST(dtype, floats_round_to_the_nearest_bfloat_and_ties_to_even) { expect_rounding(bfloat, float_to_bfloat); }

TEST(dtype, floats_beyond_the_largest_become_infinite_and_below_the_smallest_zero) {
  EXPECT_EQ(float_to_half(1e30f), 0x7c00);
  EXPECT_EQ(float_to_half(-INFINITY), 0xfc00);
  EXPECT_EQ(float_to_half(1e-30f), 0);
  EXPECT_EQ(float_to_half(-1e-30f), 0x8000);
  EXPECT_EQ(float_to_bfloat(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_bfloat(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(dtype, a_nan_with_any_payload_stays_a_nan) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xff80ffffu, 0x7fffffffu, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::bit_cast<float>(bits))))) << bits;
    EXPECT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(std::bit_cast<float>(bits))))) << bits;
  }
}

TEST(dtype, names_lead_back_to_their_dtype) {
  for (DType dtype : all_dtypes) {
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
    EXPECT_EQ(dtype_from_numpy(numpy_name(dtype)), dtype);
    dispatch(dtype, [&](auto zero) {
      EXPECT_EQ(dtype_of<decltype(zero)>(), dtype);
      EXPECT_EQ(static_cast<int64_t>(sizeof zero), byte_size(dtype));
    });
  }
  EXPECT_FALSE(dtype_from_name("float32"));
  EXPECT_FALSE(dtype_from_numpy("f32"));
}

TEST(dtype, dtypes_are_floats_integers_or_bool) {
  for (DType dtype : all_dtypes) EXPECT_EQ(is_float(dtype) + is_integer(dtype) + (dtype == DType::boolean), 1) << name(dtype);
  EXPECT_TRUE(is_signed(DType::i8) && is_signed(DType::bf16) && !is_signed(DType::u64) && !is_signed(DType::boolean));
}

TEST(dtype, conversion_to_integers_truncates_and_saturates) {
  EXPECT_EQ(convert_element<int8_t>(-1.9f), -1);
  EXPECT_EQ(convert_element<int8_t>(300.0), 127);
  EXPECT_EQ(convert_element<int8_t>(-300.0), -128);
  EXPECT_EQ(convert_element<uint8_t>(-1.0f), 0);
  EXPECT_EQ(convert_element<int64_t>(1e30f), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(convert_element<int64_t>(-INFINITY), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(convert_element<int32_t>(NAN), 0);
  EXPECT_EQ(convert_element<uint64_t>(Half(65504.0f)), 65504u);
}

TEST(dtype, conversion_to_bool_asks_for_not_zero) {
  EXPECT_TRUE(convert_element<bool>(0.25f));
  EXPECT_TRUE(convert_element<bool>(NAN));
  EXPECT_FALSE(convert_element<bool>(-0.0f));
  EXPECT_TRUE(convert_element<bool>(int64_t{1} << 40));
  EXPECT_EQ(convert_element<float>(true), 1.0f);
}

}  // namespace

}  // namespace tutti
