// dtype promotion against what Keras answered for every one, two and three of its dtypes (make_types.py).
#include "tutti/keras/promote.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tutti::keras {
namespace {

PromotedType read_type(const std::string& name) {
  if (name == "int") return python_int;
  if (name == "float") return python_float;
  auto dtype = dtype_from_numpy(name);
  EXPECT_TRUE(dtype) << name;
  return dtype.value_or(DType::f32);
}

TEST(Promote, agrees_with_keras_on_every_one_two_and_three_dtypes) {
  std::ifstream file(std::string(TUTTI_TEST_DATA) + "/promote_types/types.txt");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    std::istringstream text(line);
    std::vector<std::string> names;
    for (std::string name; text >> name;) names.push_back(name);
    ASSERT_GE(names.size(), 2u) << line;
    std::vector<PromotedType> types;
    for (size_t i = 0; i + 1 < names.size(); ++i) types.push_back(read_type(names[i]));
    EXPECT_EQ(numpy_name(result_type(types)), names.back()) << line;
    std::reverse(types.begin(), types.end());
    EXPECT_EQ(numpy_name(result_type(types)), names.back()) << line << ", the other way around";
  }
  EXPECT_EQ(lines, 15 + 120 + 680);  // ./x test makes the file
}

TEST(Promote, functions_of_real_numbers_keep_floats) {
  for (DType dtype : all_dtypes) EXPECT_EQ(float_type(dtype), is_float(dtype) ? dtype : DType::f32) << name(dtype);
}

}  // namespace
}  // namespace tutti::keras
