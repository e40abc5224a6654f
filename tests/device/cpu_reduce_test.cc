// Reductions against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/device/random_data.h"
#include "tests/device/run_graph.h"
#include "tutti/device/cpu/loops/reduce.h"
#include "tutti/graph/build.h"

namespace tutti::cpu {
namespace {

void expect_as_reference(const Graph& graph, const std::vector<float>& values, const Shape& shape) {
  const Node& node = graph.nodes().back();
  auto want = Runner(graph, "reference")({f32(shape, values)});
  for (int threads : {1, 2}) {
    auto kernel = make_reduction(graph, node, threads);
    Tensor got(graph.type(node.results[0]));
    std::vector<std::byte> workspace(static_cast<size_t>(kernel.workspace));
    const auto* from = reinterpret_cast<const std::byte*>(values.data());
    std::byte* to = got.bytes().data();
    kernel.run({&from, &to, workspace.data()});
    auto a = floats(want[0]), b = floats(got);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(a[i] == b[i] || std::fabs(a[i] - b[i]) <= 2e-6f * std::max(1.0f, std::fabs(a[i])))
          << b[i] << " at " << i << ", expected " << a[i] << "\n"
          << print_graph(graph);
  }
}

TEST(cpu_reduce, any_axes_of_any_kind) {
  const std::vector<Shape> shapes = {{},     {1},    {7},          {9, 17},      {33, 4, 5},         {2, 49, 130}, {3, 4, 5, 6},
                                     {2, 0}, {0, 3}, {5, 1, 1, 3}, {2, 300, 40}, {2, 3, 4, 2, 3, 4}, {40000, 3},   {1, 16, 16, 64}};
  for (const Shape& shape : shapes) {
    auto values = random_floats(shape.elements(), 0.9f, 1.1f, 7);
    for (unsigned which = 0; which < (1u << shape.rank()); ++which) {
      Ints axes;
      for (int64_t i = 0; i < shape.rank(); ++i)
        if ((which >> i & 1) != 0) axes.push_back(i);
      for (const char* kind : {"add", "multiply", "max", "min"}) {
        if (std::string(kind) == "multiply" && shape.elements() > 1000) continue;
        Graph graph;
        graph.output("y", reduce(graph.input("x", {DType::f32, shape}), kind, axes));
        if (graph.nodes().back().op == Op::reduce) expect_as_reference(graph, values, shape);
      }
    }
  }
}

TEST(cpu_reduce, long_sums_keep_the_precision_of_a_float) {
  const int64_t length = 1 << 20;
  auto values = random_floats(length * 3, 0, 1, 7);
  double all = 0, first = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    all += values[i];
    if (i % 3 == 0) first += values[i];
  }
  float row = 0, columns[3];
  reduce_rows(Reduce::add, values.data(), 1, length * 3, &row);
  reduce_columns(Reduce::add, values.data(), 1, length, 3, columns);
  EXPECT_NEAR(row / all, 1, 2e-7);
  EXPECT_NEAR(columns[0] / first, 1, 2e-7);
}

TEST(cpu_reduce, nan_and_infinity_stay) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (auto kind : {Reduce::add, Reduce::multiply, Reduce::max, Reduce::min}) {
    for (size_t place : {0u, 5u, 40u, 998u}) {
      std::vector<float> x(999, 1);
      float row = 0;
      x[place] = none;
      reduce_rows(kind, x.data(), 1, 999, &row);
      EXPECT_TRUE(std::isnan(row)) << place;
      std::vector<float> columns(3);
      reduce_columns(kind, x.data(), 1, 333, 3, columns.data());
      EXPECT_TRUE(std::isnan(columns[place % 3])) << place;
      EXPECT_FALSE(std::isnan(columns[(place + 1) % 3])) << place;
    }
  }
  std::vector<float> x(999, 1);
  x[3] = infinity;
  float column = 0;
  std::vector<float> columns(3);
  reduce_columns(Reduce::add, x.data(), 1, 333, 3, columns.data());
  EXPECT_EQ(columns[0], infinity);
  reduce_rows(Reduce::max, x.data(), 1, 999, &column);
  EXPECT_EQ(column, infinity);
}

}  // namespace
}  // namespace tutti::cpu
