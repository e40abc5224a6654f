#include "tests/transform/before_after.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

Graph move_weights(const Graph& graph) { return remove_dead(move_weights_into_scans(graph)); }

TEST(MoveWeightsIntoScans, whole_constants_are_known_inside) {
  constexpr std::string_view before = R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 2]
    %v = parameter {role = "input", name = "v"} : f32[2]
    %w = constant <1, -2> : f32[2]
    %p = scan(%w, %x, %w, %v) {carries = 1, slices = 1, length = 3, reverse = 0} {
      %0 = parameter {role = "input", name = "carry0"} : f32[2]
      %1 = parameter {role = "input", name = "slice0"} : f32[2]
      %2 = parameter {role = "input", name = "whole0"} : f32[2]
      %3 = parameter {role = "input", name = "whole1"} : f32[2]
      %4 = multiply(%0, %2)
      %5 = add(%4, %1)
      %6 = add(%5, %3)
      return %6 "carry0"
    }
    return %p "p"
  })";
  expect_after(move_weights, before, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 2]
    %v = parameter {role = "input", name = "v"} : f32[2]
    %w = constant <1, -2> : f32[2]
    %p = scan(%w, %x, %v) {carries = 1, slices = 1, length = 3, reverse = 0} {
      %0 = parameter {role = "input", name = "carry0"} : f32[2]
      %1 = parameter {role = "input", name = "slice0"} : f32[2]
      %2 = constant <1, -2> : f32[2]
      %3 = parameter {role = "input", name = "whole1"} : f32[2]
      %4 = multiply(%0, %2)
      %5 = add(%4, %1)
      %6 = add(%5, %3)
      return %6 "carry0"
    }
    return %p "p"
  })");
  expect_exact(move_weights, before);
}

TEST(MoveWeightsIntoScans, the_bytes_of_a_weight_are_shared_and_loops_in_loops_get_theirs) {
  Tensor data(DType::f32, {2});
  std::fill_n(data.as<float>().begin(), 2, 0.5f);
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2}}), w = graph.parameter(Graph::Role::weight, "w", data.type(), data);
  auto out = scan({x}, {}, {w}, 2, false, [](Graph&, auto carries, auto, auto whole) {
    auto inner = scan({carries[0]}, {}, {whole[0]}, 2, false, [](Graph&, auto c, auto, auto weights) {
      return ScanStep{{c[0] * weights[0]}, {}};
    });
    return ScanStep{inner.carries, {}};
  });
  graph.output("y", out.carries[0]);
  Graph after = move_weights(graph);
  verify(after);
  const Graph& body = *after.nodes().back().body->nodes().back().body;
  size_t found = 0;
  for (const Node& node : body.nodes())
    found += node.op == Op::constant && node.literal.bytes().data() == std::as_const(data).bytes().data();
  EXPECT_EQ(found, 1u) << print_graph(after);
  EXPECT_TRUE(after.parameters(Graph::Role::weight).empty());
  expect_same_results(graph, after, 0, true);
}

}  // namespace
}  // namespace tutti
