#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/ops/op_case.h"
#include "tests/sanitized.h"
#include "tutti/base/error.h"
#include "tutti/graph/cost.h"

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

// The reference rounds once; others add floats up in an order of their own, and `sums` is what that may cost. The windows of convolutions
// are long: partial sums grow as the root of their terms, and so does what remains of the errors.
void expect_agreement(const std::string& device_name, double sums) {
  CaseFile file(TUTTI_TEST_DATA "/ops_cases");
  auto device = open_device(device_name);
  for (const auto& name : read_op_cases(default_op_cases())) {
    Graph graph = case_graph(name);
    CaseData data = file.load(name, graph);
    auto results = run_on(*device, graph, data.operands);
    OpClass c = row(graph.nodes().back().op).op_class;
    bool adds = c == OpClass::reduction || c == OpClass::contraction;
    double rounding = sums;
    if (const Node& last = graph.nodes().back(); last.op == Op::convolution && results[0].elements() > 0)
      rounding *= std::max(1.0, static_cast<double>(cost(graph, last).flops) / static_cast<double>(64 * results[0].elements()));
    double relative = adds ? std::max(data.relative, rounding) : data.relative;
    double absolute = adds ? std::max(data.absolute, rounding) : data.absolute;
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(difference(results[i], data.results[i], relative, absolute), "") << "result " << i << " of " << name;
  }
}

double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::f16: return 0x1p-14;
    case DType::bf16:
    case DType::f32: return std::numeric_limits<float>::min();
    default: return std::numeric_limits<double>::min();
  }
}

// XLA on the processor takes denormal numbers for zeros.
bool flush_denormals(Tensor& tensor) {
  bool any = false;
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_integral_v<T>) {
      for (T& value : tensor.as<T>())
        if (const auto x = static_cast<double>(value); x != 0 && std::fabs(x) < smallest_normal(tensor.dtype())) {
          value = T(std::copysign(0.0F, static_cast<float>(x)));
          any = true;
        }
    }
  });
  return any;
}

// XLA computes f16 and bf16 rounding by rounding and has functions of its own, so what the reference may be off by its last digit, it may
// be off by a few. Under sanitizers every fifth case: what is ours there is the printer and the calls of the plugin, the rest is XLA's.
TEST(op_cases, xla_agrees_with_numpy_and_jax) {
  const std::map<DType, double> few_digits = {{DType::f16, 4e-3}, {DType::bf16, 1.6e-2}, {DType::f32, 5e-6}, {DType::f64, 1e-12}};
  std::shared_ptr<Device> device, reference = open_device("reference");
  try {
    device = open_device("xla:cpu");
  } catch (const DeviceError& e) {
    GTEST_SKIP() << e.what();
  }
  CaseFile file(TUTTI_TEST_DATA "/ops_cases");
  const auto names = read_op_cases(default_op_cases());
  for (size_t n = 0; n < names.size(); n += sanitized ? 5 : 1) {
    const auto& name = names[n];
    Graph graph = case_graph(name);
    CaseData data = file.load(name, graph);
    bool flushed = false;
    for (Tensor& operand : data.operands) flushed |= flush_denormals(operand);
    if (flushed) data.results = run_on(*reference, graph, data.operands);
    const auto results = run_on(*device, graph, data.operands);
    const OpClass c = row(graph.nodes().back().op).op_class;
    const bool rounds =
        c == OpClass::reduction || c == OpClass::contraction || c == OpClass::control || data.relative > 0 || data.absolute > 0;
    for (size_t i = 0; i < results.size(); ++i) {
      const auto found = few_digits.find(results[i].dtype());
      double relative = 0, absolute = 0;
      if (found != few_digits.end()) {
        if (rounds) relative = absolute = found->second;
        absolute = std::max(absolute, smallest_normal(results[i].dtype()));
      }
      EXPECT_EQ(difference(results[i], data.results[i], relative, absolute), "") << "result " << i << " of " << name;
    }
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
