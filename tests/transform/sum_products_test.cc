#include "tests/transform/before_after.h"
#include "tutti/graph/compose.h"

namespace tutti {
namespace {

Value linear(Value x, float first) { return matmul(x, weight(x.graph(), {3, 2}, first)) + weight(x.graph(), {2}, first); }

size_t count(const Graph& graph, Op op) {
  const Graph live = remove_dead(graph);
  return static_cast<size_t>(std::count_if(live.nodes().begin(), live.nodes().end(), [&](const Node& node) { return node.op == op; }));
}

TEST(SumProducts, the_mean_of_linear_models_is_one_product) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3}});
  graph.output("mean", mean(stack({linear(x, 1), linear(x, -2), linear(x, 0.5)}, 0), {0}));
  const Graph after = sum_products(graph);
  verify(after);
  EXPECT_EQ(count(graph, Op::dot_general), 3u);
  EXPECT_EQ(count(after, Op::dot_general), 1u);
  expect_same_results(graph, after, 1e-6, false);
}

TEST(SumProducts, also_added_one_by_one_and_among_other_terms) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3}}), y = graph.input("y", {DType::f32, {4, 2}});
  graph.output("sum", linear(x, 1) + (y + linear(x, 2)) + linear(tanh(x), 3));
  const Graph after = sum_products(graph);
  EXPECT_EQ(count(after, Op::dot_general), 2u);
  expect_same_results(graph, after, 1e-6, false);
}

TEST(SumProducts, what_is_read_elsewhere_or_not_alike_stays) {
  const auto unchanged = [](const std::function<void(Graph&, Value)>& make) {
    Graph graph;
    make(graph, graph.input("x", {DType::f32, {4, 3}}));
    EXPECT_EQ(print_graph(sum_products(graph)), print_graph(graph));
  };
  unchanged([](Graph& graph, Value x) { graph.output("sum", linear(x, 1) + linear(tanh(x), 2)); });
  unchanged([](Graph& graph, Value x) {
    const Value a = matmul(x, weight(graph, {3, 2}, 1)), b = matmul(x, weight(graph, {3, 2}, 2));
    graph.output("sum", a + b);
    graph.output("a", a);
  });
  unchanged([](Graph& graph, Value x) {  // a maximum is no sum
    graph.output("max", reduce_max(stack({linear(x, 1), linear(x, 2)}, 0), {0}));
  });
}

}  // namespace
}  // namespace tutti
