#include "tutti/graph/cost.h"

#include <gtest/gtest.h>

#include <limits>

#include "tutti/graph/build.h"

namespace tutti {
namespace {

Cost of_last(const Graph& graph) { return cost(graph, graph.nodes().back()); }

TEST(cost, counts_multiplications_and_additions_of_contractions) {
  Graph graph;
  Value a = graph.input("a", {DType::f32, {7, 3, 4}}), b = graph.input("b", {DType::f32, {7, 4, 5}});
  dot_general(a, b, {{0}, {0}, {2}, {1}});
  EXPECT_EQ(of_last(graph).flops, 2 * 7 * 3 * 4 * 5);
  EXPECT_EQ(of_last(graph).bytes, 4 * (7 * 3 * 4 + 7 * 4 * 5 + 7 * 3 * 5));
  Value x = graph.input("x", {DType::f16, {2, 8, 8, 6}}), k = graph.input("k", {DType::f16, {3, 3, 2, 9}});
  convolution(x, k, {{1, 1}, {1, 1}, {1, 1}, {}, {}, 3});
  EXPECT_EQ(of_last(graph).flops, 2 * (2 * 8 * 8 * 9) * (3 * 3 * 2));
}

TEST(cost, counts_elements_of_the_rest) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 6}});
  exponential(x);
  EXPECT_EQ(of_last(graph).flops, 24);
  EXPECT_EQ(of_last(graph).bytes, 2 * 24 * 4);
  reduce(x, "add", {0});
  EXPECT_EQ(of_last(graph).flops, 24);
  reduce_window(x, "max", {{2, 3}, {2, 3}, {0, 0}, {0, 0}});
  EXPECT_EQ(of_last(graph).flops, 2 * 2 * 6);
  transpose(x, {1, 0});
  EXPECT_EQ(of_last(graph).flops, 0);
  reshape(x, {24});
  EXPECT_EQ(of_last(graph).bytes, 0);
}

TEST(cost, a_slice_reads_what_it_takes) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {1000, 6}});
  slice(x, {0, 0}, {4, 6});
  EXPECT_EQ(of_last(graph).bytes, 2 * 24 * 4);
}

TEST(cost, counts_a_body_once_a_step) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {5}});
  scan({x}, {}, {}, 11, false, [](Graph&, auto carries, auto, auto) { return ScanStep{{tanh(carries[0])}, {}}; });
  EXPECT_EQ(cost(graph).flops, 11 * 5);
}

TEST(cost, stays_at_the_maximum) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {int64_t{1} << 30}});
  dot_general(dot_general(x, graph.input("y", {DType::f32, {1 << 18}}), {{}, {}, {}, {}}), x, {{}, {}, {0}, {0}});
  scan({x}, {}, {}, int64_t{1} << 40, false, [](Graph&, auto carries, auto, auto) { return ScanStep{{tanh(carries[0])}, {}}; });
  EXPECT_EQ(cost(graph).flops, std::numeric_limits<int64_t>::max());
}

TEST(cost, weights_and_states_are_weights) {
  Graph graph;
  graph.input("x", {DType::f32, {100}});
  graph.parameter(Graph::Role::weight, "w", {DType::f64, {10}});
  graph.parameter(Graph::Role::state, "s", {DType::i8, {3}});
  EXPECT_EQ(weight_bytes(graph), 83);
}

}  // namespace
}  // namespace tutti
