#include "tutti/base/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/sanitized.h"
#include "tests/scratch.h"
#include "tutti/base/error.h"

namespace tutti {

namespace {

TEST(tensor, holds_its_values_aligned) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  Tensor tensor = Tensor::of<float>({2, 3}, values);
  EXPECT_EQ(to_string(tensor.type()), "f32[2, 3]");
  EXPECT_EQ(tensor.as<float>()[4], 5.0f);
  EXPECT_EQ(tensor.bytes().size(), 24u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes().data()) % 64, 0u);
}

TEST(tensor, as_many_values_as_elements_are_needed) {
  std::vector<float> values = {1, 2, 3};
  EXPECT_THROW(Tensor::of<float>({2}, values), InvalidArgument);
  EXPECT_THROW(Tensor::of<float>({4}, values), InvalidArgument);
}

TEST(tensor, copies_share_their_bytes) {
  Tensor tensor(DType::i32, {4});
  Tensor copy = tensor, reshaped = tensor.reshaped({2, 2});
  tensor.as<int32_t>()[3] = 7;
  EXPECT_EQ(copy.as<int32_t>()[3], 7);
  EXPECT_EQ(reshaped.as<int32_t>()[3], 7);
  EXPECT_THROW(tensor.reshaped({3}), InvalidArgument);
}

TEST(tensor, reading_as_another_dtype_says_both) {
  Tensor tensor(DType::f16, {2});
  std::string message = message_of<InvalidArgument>([&] { tensor.as<float>(); });
  EXPECT_EQ(message, "[tensor] holds f16[2], read as f32");
}

TEST(tensor, converts_between_all_dtypes) {
  Tensor tensor = Tensor::of<double>({4}, std::vector<double>{0, 1, 2, 100});
  for (DType first : all_dtypes)
    for (DType second : all_dtypes) {
      bool to_bool = first == DType::boolean || second == DType::boolean;
      Tensor back = tensor.converted(first).converted(second).converted(DType::f64);
      for (size_t i = 0; i < 4; ++i)
        EXPECT_EQ(back.as<double>()[i], to_bool ? std::min(tensor.as<double>()[i], 1.0) : tensor.as<double>()[i])
            << name(first) << " " << name(second);
    }
}

TEST(tensor, a_scalar_and_no_elements_are_tensors_too) {
  EXPECT_EQ(Tensor::scalar(3.5f).as<float>()[0], 3.5f);
  EXPECT_EQ(Tensor::scalar(3.5f).shape().rank(), 0);
  Tensor none(DType::f32, {0, 3});
  EXPECT_EQ(none.elements(), 0);
  EXPECT_FALSE(none.empty());
  EXPECT_TRUE(Tensor().empty());
}

#if !TUTTI_SANITIZED
TEST(tensor, more_memory_than_there_is_is_an_error_of_ours) { EXPECT_THROW(Tensor(DType::f64, {int64_t{1} << 48}), OutOfMemory); }
#endif

}  // namespace

}  // namespace tutti
