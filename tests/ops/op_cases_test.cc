#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/ops/op_case.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

TEST(op_cases, every_op_has_a_case) {
  std::set<std::string> present;
  for (const auto& name : read_op_cases(default_op_cases())) present.insert(op_name(name));
  for (const auto& row : op_table()) EXPECT_TRUE(present.contains(std::string(row.name))) << "no case for " << row.name;
}

// The dtypes an op takes are those its type rule takes: each must stand in a case.
TEST(op_cases, every_dtype_of_an_elementwise_op_has_a_case) {
  std::set<std::pair<std::string, DType>> present;
  for (const auto& name : read_op_cases(default_op_cases())) present.insert({op_name(name), case_graph(name).type(0).dtype});
  for (const auto& row : op_table()) {
    if (row.op_class != OpClass::unary && row.op_class != OpClass::binary) continue;
    if (!row.attributes.empty()) continue;
    for (DType dtype : all_dtypes) {
      std::vector<Type> operands(static_cast<size_t>(row.at_least), Type{dtype, {3}});
      try {
        infer_types({row.op, operands, Attributes{}});
      } catch (const InvalidArgument&) {
        continue;
      }
      EXPECT_TRUE(present.contains({std::string(row.name), dtype})) << "no case for " << row.name << " of " << name(dtype);
    }
  }
}

// The reference rounds once; others add floats up in an order of their own, and `sums` is what that may cost.
void expect_agreement(const std::string& device_name, double sums) {
  CaseFile file(TUTTI_TEST_DATA "/ops_cases");
  auto device = open_device(device_name);
  for (const auto& name : read_op_cases(default_op_cases())) {
    Graph graph = case_graph(name);
    CaseData data = file.load(name, graph);
    auto results = run_on(*device, graph, data.operands);
    OpClass c = row(graph.nodes().back().op).op_class;
    bool adds = c == OpClass::reduction || c == OpClass::contraction;
    double relative = adds ? std::max(data.relative, sums) : data.relative, absolute = adds ? std::max(data.absolute, sums) : data.absolute;
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(difference(results[i], data.results[i], relative, absolute), "") << "result " << i << " of " << name;
  }
}

TEST(op_cases, reference_agrees_with_numpy_and_jax) { expect_agreement("reference", 0); }
TEST(op_cases, cpu_agrees_with_numpy_and_jax) { expect_agreement("cpu", 2e-6); }

TEST(op_cases, the_comparison_sees_differences) {
  auto f32 = [](std::vector<float> values) { return Tensor::of<float>({static_cast<int64_t>(values.size())}, values); };
  float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(difference(f32({1, nan}), f32({1, nan}), 0, 0), "");
  EXPECT_EQ(difference(f32({1, 1.05f}), f32({1, 1}), 0.1, 0), "");
  EXPECT_EQ(difference(f32({1, 1.5f}), f32({1, 1}), 0.1, 0), "element 1 is 1.5, expected 1");
  EXPECT_NE(difference(f32({nan}), f32({1}), 1, 1), "");
  EXPECT_NE(difference(f32({1}), f32({nan}), 1, 1), "");
  EXPECT_NE(difference(f32({1}), f32({inf}), 1, 1), "");
  EXPECT_NE(difference(f32({-0.0f}), f32({0.0f}), 0, 0), "");
  EXPECT_NE(difference(f32({1, 2}), f32({1}), 0, 0), "");
}

}  // namespace
}  // namespace tutti
