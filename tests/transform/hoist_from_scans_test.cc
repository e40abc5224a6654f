#include "tests/transform/before_after.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

Graph hoist(const Graph& graph) { return remove_dead(hoist_from_scans(graph)); }

TEST(HoistFromScans, what_is_the_same_at_every_step_is_done_before_the_loop) {
  constexpr std::string_view before = R"(graph {
    %a = parameter {role = "input", name = "a"} : f32[2, 2]
    %w = parameter {role = "input", name = "w"} : f32[2]
    %p = scan(%a, %w) {carries = 1, slices = 0, length = 3, reverse = 0} {
      %0 = parameter {role = "input", name = "carry0"} : f32[2, 2]
      %1 = parameter {role = "input", name = "whole0"} : f32[2]
      %2 = tanh(%1)
      %3 = broadcast_in_dim(%2) {shape = [2, 2], dimensions = [1]}
      %4 = add(%0, %3)
      return %4 "carry0"
    }
    return %p "p"
  })";
  expect_after(hoist, before, R"(graph {
    %a = parameter {role = "input", name = "a"} : f32[2, 2]
    %w = parameter {role = "input", name = "w"} : f32[2]
    %t = tanh(%w)
    %p = scan(%a, %t) {carries = 1, slices = 0, length = 3, reverse = 0} {
      %0 = parameter {role = "input", name = "carry0"} : f32[2, 2]
      %1 = parameter {role = "input", name = "fixed2"} : f32[2]
      %2 = broadcast_in_dim(%1) {shape = [2, 2], dimensions = [1]}
      %3 = add(%0, %2)
      return %3 "carry0"
    }
    return %p "p"
  })");
  expect_exact(hoist, before);
}

TEST(HoistFromScans, the_projection_of_slices_becomes_one_product) {
  constexpr std::string_view before = R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 1, 2]
    %a = parameter {role = "input", name = "a"} : f32[1, 2]
    %w = parameter {role = "input", name = "w"} : f32[2, 2]
    %b = parameter {role = "input", name = "b"} : f32[2]
    %p, %s = scan(%a, %x, %w, %b) {carries = 1, slices = 1, length = 3, reverse = 1} {
      %0 = parameter {role = "input", name = "carry0"} : f32[1, 2]
      %1 = parameter {role = "input", name = "slice0"} : f32[1, 2]
      %2 = parameter {role = "input", name = "whole0"} : f32[2, 2]
      %3 = parameter {role = "input", name = "whole1"} : f32[2]
      %4 = dot_general(%1, %2) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]}
      %5 = reshape(%3) {shape = [1, 2]}
      %6 = add(%4, %5)
      %7 = dot_general(%0, %2) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]}
      %8 = add(%6, %7)
      return %8 "carry0", %6 "stacked0"
    }
    return %p "p", %s "s"
  })";
  expect_after(hoist, before, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 1, 2]
    %a = parameter {role = "input", name = "a"} : f32[1, 2]
    %w = parameter {role = "input", name = "w"} : f32[2, 2]
    %b = parameter {role = "input", name = "b"} : f32[2]
    %d = dot_general(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contracting = [2], rhs_contracting = [0]}
    %r = reshape(%b) {shape = [1, 2]}
    %c = broadcast_in_dim(%r) {shape = [3, 1, 2], dimensions = [1, 2]}
    %e = add(%d, %c)
    %p, %s = scan(%a, %e, %w) {carries = 1, slices = 1, length = 3, reverse = 1} {
      %0 = parameter {role = "input", name = "carry0"} : f32[1, 2]
      %1 = parameter {role = "input", name = "sliced6"} : f32[1, 2]
      %2 = parameter {role = "input", name = "whole0"} : f32[2, 2]
      %3 = dot_general(%0, %2) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]}
      %4 = add(%1, %3)
      return %4 "carry0", %1 "stacked0"
    }
    return %p "p", %s "s"
  })");
  expect_exact(hoist, before);
}

// A scan over x [length, 2, 4, 4, 2] whose carry is a sum of `project` of each slice.
template <class F>
Graph loop(F&& project) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {3, 2, 4, 4, 2}}), k = graph.input("k", {DType::f32, {3, 3, 2, 2}});
  Value start = full(graph, {DType::f32, {2, 4, 4, 2}}, 0);
  auto out = scan({start}, {x}, {k}, 3, false, [&](Graph&, auto carries, auto slices, auto whole) {
    Value next = tanh(carries[0]) + project(slices[0], whole[0]);
    return ScanStep{{next}, {next}};
  });
  graph.output("last", out.carries[0]);
  graph.output("all", out.stacked[0]);
  return graph;
}

size_t body_nodes(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.body) return node.body->nodes().size();
  return 0;
}

TEST(HoistFromScans, every_op_on_the_way_to_a_product_goes_with_it) {
  auto same = [](Value x, Value k) { return convolution(x, k, {{1, 1}, {1, 1}, {1, 1}}); };
  Graph graph = loop([&](Value x, Value k) {
    Value y = transpose(same(-x, k * 2.0), {0, 2, 1, 3}), largest = broadcast_to(reduce(x, "max", {1, 2}, true), x.shape());
    y = reshape(y, {2, 16, 2}) + slice(reshape(largest, {2, 16, 2}), {0, 0, 0}, {2, 16, 2});
    return reshape(y, {2, 4, 4, 2});
  });
  Graph after = hoist(graph);
  verify(after);
  EXPECT_LT(body_nodes(after), 6u) << print_graph(after);
  expect_same_results(graph, after, 0, false);
  expect_same_results(graph, after, 0, true);
}

TEST(HoistFromScans, elementwise_work_on_slices_alone_stays) {
  Graph graph = loop([](Value x, Value) { return tanh(x); });
  Graph after = hoist(graph);
  EXPECT_EQ(body_nodes(after), body_nodes(remove_dead(graph)));
}

TEST(HoistFromScans, products_with_the_carry_and_of_slices_stay) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {3, 2, 2}}), start = graph.input("a", {DType::f32, {2, 2}});
  DotDims dims{{}, {}, {1}, {0}};
  auto out = scan({start}, {x}, {}, 3, false, [&](Graph&, auto carries, auto slices, auto) {
    return ScanStep{{dot_general(slices[0], carries[0], dims) + dot_general(slices[0], slices[0], dims)}, {}};
  });
  graph.output("last", out.carries[0]);
  EXPECT_EQ(print_graph(hoist(graph)), print_graph(graph));
}

}  // namespace
}  // namespace tutti
