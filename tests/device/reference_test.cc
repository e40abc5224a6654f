#include <gtest/gtest.h>

#include "tests/device/run_graph.h"
#include "tests/graph/random_graph.h"
#include "tutti/device/reference/kernel.h"

namespace tutti {
namespace {

using Floats = std::vector<float>;

TEST(reference, has_a_kernel_for_every_op_that_is_no_view) {
  for (const auto& row : op_table()) {
    bool none = row.op == Op::parameter || row.op == Op::constant || row.op == Op::reshape || row.op == Op::bitcast_convert;
    EXPECT_EQ(reference::find_kernel(row.op) == nullptr, none) << row.name;
  }
}

TEST(reference, sums_do_not_lose_small_terms) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {3000}});
  graph.output("sum", reduce(x, "add", {0}));
  graph.output("dot", dot_general(x, full_like(x, 1), {{}, {}, {0}, {0}}));
  Floats values(3000, 1);
  values[0] = 1e9f;
  values[2999] = -1e9f;
  auto out = Runner(graph, "reference")({f32({3000}, values)});
  EXPECT_EQ(floats(out[0]), (Floats{2998}));
  EXPECT_EQ(floats(out[1]), (Floats{2998}));
}

TEST(reference, counts_its_work) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 3}});
  Value w = graph.parameter(Graph::Role::weight, "w", {DType::f32, {3, 4}}, RandomGraph::ramp({3, 4}));
  graph.output("y", tanh(reshape(dot_general(x, w, {{}, {}, {1}, {0}}), {8})));
  Runner runner(graph, "reference");
  const auto& stats = runner.program().stats();
  EXPECT_EQ(stats.kernels, 2);
  EXPECT_EQ(stats.flops, 2 * 2 * 3 * 4 + 8);
  EXPECT_EQ(stats.bytes, (6 + 12 + 8) * 4 + (8 + 8) * 4);
  EXPECT_EQ(stats.weight_bytes, 48);
  EXPECT_GE(stats.peak_memory_bytes, 64);
}

}  // namespace
}  // namespace tutti
