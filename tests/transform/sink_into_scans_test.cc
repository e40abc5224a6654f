#include "tests/transform/before_after.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

Graph sink(const Graph& graph) { return remove_dead(sink_into_scans(graph)); }

TEST(SinkIntoScans, a_product_that_is_larger_than_its_factors_is_made_step_by_step) {
  constexpr std::string_view before = R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 8, 1]
    %a = parameter {role = "input", name = "a"} : f32[8, 4]
    %w = parameter {role = "input", name = "w"} : f32[1, 4]
    %b = parameter {role = "input", name = "b"} : f32[4]
    %v = parameter {role = "input", name = "v"} : f32[4, 4]
    %d = dot_general(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contracting = [2], rhs_contracting = [0]}
    %c = broadcast_in_dim(%b) {shape = [3, 8, 4], dimensions = [2]}
    %e = add(%d, %c)
    %p, %s = scan(%a, %e, %v) {carries = 1, slices = 1, length = 3, reverse = 1} {
      %0 = parameter {role = "input", name = "carry0"} : f32[8, 4]
      %1 = parameter {role = "input", name = "slice0"} : f32[8, 4]
      %2 = parameter {role = "input", name = "whole0"} : f32[4, 4]
      %3 = dot_general(%0, %2) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]}
      %4 = add(%1, %3)
      return %4 "carry0", %1 "stacked0"
    }
    return %p "p", %s "s"
  })";
  expect_after(sink, before, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 8, 1]
    %a = parameter {role = "input", name = "a"} : f32[8, 4]
    %w = parameter {role = "input", name = "w"} : f32[1, 4]
    %b = parameter {role = "input", name = "b"} : f32[4]
    %v = parameter {role = "input", name = "v"} : f32[4, 4]
    %p, %s = scan(%a, %x, %v, %w, %b) {carries = 1, slices = 1, length = 3, reverse = 1} {
      %0 = parameter {role = "input", name = "carry0"} : f32[8, 4]
      %1 = parameter {role = "input", name = "sunk_slice0"} : f32[8, 1]
      %2 = parameter {role = "input", name = "whole0"} : f32[4, 4]
      %3 = parameter {role = "input", name = "sunk_whole2"} : f32[1, 4]
      %4 = parameter {role = "input", name = "sunk_whole3"} : f32[4]
      %5 = dot_general(%1, %3) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]}
      %6 = broadcast_in_dim(%4) {shape = [8, 4], dimensions = [1]}
      %7 = add(%5, %6)
      %8 = dot_general(%0, %2) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]}
      %9 = add(%7, %8)
      return %9 "carry0", %7 "stacked0"
    }
    return %p "p", %s "s"
  })");
  expect_exact(sink, before);
}

TEST(SinkIntoScans, what_is_read_whole_and_step_by_step_stays_outside) {
  constexpr std::string_view before = R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 4, 3]
    %a = parameter {role = "input", name = "a"} : f32[4, 4, 3]
    %d = dot_general(%x, %x) {lhs_batch = [], rhs_batch = [], lhs_contracting = [2], rhs_contracting = [0]}
    %p = scan(%a, %d) {carries = 1, slices = 1, length = 3, reverse = 0} {
      %0 = parameter {role = "input", name = "carry0"} : f32[4, 4, 3]
      %1 = parameter {role = "input", name = "slice0"} : f32[4, 4, 3]
      %2 = add(%0, %1)
      return %2 "carry0"
    }
    return %p "p"
  })";
  expect_after(sink, before, before);
}

struct Projection {
  int64_t rows, features, units;
};

// A scan over `make` of a product of x [5, rows, features] with w [features, units].
template <class F>
Graph loop(const Projection& p, F&& make) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {5, p.rows, p.features}}), w = graph.input("w", {DType::f32, {p.features, p.units}});
  Value start = full(graph, {DType::f32, {p.rows, p.units}}, 0), product = dot_general(x, w, {{}, {}, {2}, {0}});
  auto out = scan({start}, {make(product)}, {}, 5, false, [&](Graph&, auto carries, auto slices, auto) {
    Value next = tanh(carries[0] + slices[0]);
    return ScanStep{{next}, {next}};
  });
  graph.output("last", out.carries[0]);
  graph.output("all", out.stacked[0]);
  return graph;
}

int64_t products_in_loops(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes())
    if (node.body)
      for (const Node& inner : node.body->nodes()) count += inner.op == Op::dot_general;
  return count;
}

TEST(SinkIntoScans, goes_by_what_a_step_would_read) {
  const auto itself = [](Value product) { return product; };
  EXPECT_EQ(products_in_loops(sink(loop({32, 8, 64}, itself))), 1);   // 8 x (32 + 64) numbers for 32 x 64, twice
  EXPECT_EQ(products_in_loops(sink(loop({32, 64, 64}, itself))), 0);  // the product is no larger than what it is made of
  EXPECT_EQ(products_in_loops(sink(loop({1, 8, 64}, itself))), 0);    // a step would read the weights and little else
}

TEST(SinkIntoScans, takes_elementwise_work_along) {
  Graph graph = loop({32, 8, 64}, [](Value product) { return tanh(product * 2.0) - product * 0.5 + 1.0; });
  Graph after = sink(graph);
  verify(after);
  EXPECT_EQ(products_in_loops(after), 0);  // two read the product
  graph = loop({32, 8, 64}, [](Value product) { return clamp(tanh(-product), -0.5, 0.5); });
  after = sink(graph);
  verify(after);
  EXPECT_EQ(products_in_loops(after), 1) << print_graph(after);
  expect_same_results(graph, after, 0, false);
  expect_same_results(graph, after, 0, true);
}

TEST(SinkIntoScans, what_others_read_as_well_stays) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {5, 32, 8}}), w = graph.input("w", {DType::f32, {8, 64}});
  Value product = dot_general(x, w, {{}, {}, {2}, {0}});
  auto out = scan({full(graph, {DType::f32, {32, 64}}, 0)}, {product}, {}, 5, false, [&](Graph&, auto carries, auto slices, auto) {
    return ScanStep{{carries[0] + slices[0]}, {}};
  });
  graph.output("last", out.carries[0]);
  graph.output("product", product);
  EXPECT_EQ(print_graph(sink(graph)), print_graph(remove_dead(graph)));
}

TEST(SinkIntoScans, scans_in_scans_too) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {5, 32, 8}}), w = graph.input("w", {DType::f32, {8, 64}});
  auto out = scan({full(graph, {DType::f32, {32, 64}}, 0)}, {}, {x, w}, 2, false, [&](Graph&, auto carries, auto, auto whole) {
    auto inner = scan({carries[0]}, {dot_general(whole[0], whole[1], {{}, {}, {2}, {0}})}, {}, 5, true,
                      [&](Graph&, auto inner_carries, auto slices, auto) {
                        return ScanStep{{inner_carries[0] + slices[0]}, {}};
                      });
    return ScanStep{{inner.carries[0]}, {}};
  });
  graph.output("last", out.carries[0]);
  Graph after = sink(graph);
  verify(after);
  int64_t products = 0;
  for (const Node& node : after.nodes())
    if (node.body) products += products_in_loops(*node.body);
  EXPECT_EQ(products, 1);
  expect_same_results(graph, after, 0, false);
}

}  // namespace
}  // namespace tutti
