#include "tests/transform/before_after.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

TEST(ShareCommon, makes_one_node_of_equal_ones) {
  expect_after(share_common, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[2]
    %a = constant <1> : f32[]
    %b = constant <1> : f32[]
    %c = broadcast_in_dim(%a) {shape = [2], dimensions = []}
    %d = broadcast_in_dim(%b) {shape = [2], dimensions = []}
    %e = add(%x, %c)
    %f = add(%x, %d)
    %g = multiply(%e, %f)
    return %g "g"
  })",
               R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[2]
    %a = constant <1> : f32[]
    %c = broadcast_in_dim(%a) {shape = [2], dimensions = []}
    %e = add(%x, %c)
    %g = multiply(%e, %e)
    return %g "g"
  })");
}

TEST(ShareCommon, tells_attributes_zeros_types_and_parameters_apart) {
  expect_unchanged(share_common, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[2, 2]
    %v = parameter {role = "weight", name = "v"} : f32[]
    %w = parameter {role = "weight", name = "v"} : f32[]
    %0 = constant <0> : f32[]
    %1 = constant <-0> : f32[]
    %2 = constant <0> : i32[]
    %3 = constant <0> : f32[1]
    %4 = iota {dimension = 0} : i32[2, 2]
    %5 = iota {dimension = 1} : i32[2, 2]
    %6 = reduce(%x) {kind = "add", dimensions = [0]}
    %7 = reduce(%x) {kind = "add", dimensions = [1]}
    %8 = reduce(%x) {kind = "max", dimensions = [0]}
    return %6 "a", %7 "b", %8 "c"
  })");
}

TEST(ShareCommon, knows_large_constants_by_where_they_lie) {
  Tensor data(DType::f32, {10000}), copy(DType::f32, {10000});
  for (float& x : data.as<float>()) x = 1;
  for (float& x : copy.as<float>()) x = 1;
  Graph graph;
  graph.output("a", graph.constant(data));
  graph.output("b", graph.constant(data));
  graph.output("c", graph.constant(copy));
  Graph out = share_common(graph);
  EXPECT_EQ(out.nodes().size(), 2u);
  EXPECT_EQ(out.outputs()[0].value, out.outputs()[1].value);
}

TEST(ShareCommon, compares_the_bodies_of_scans) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2}});
  auto loop = [&](Op op) {
    return scan({x}, {}, {}, 3, false, [&](Graph&, auto carries, auto, auto) { return ScanStep{{unary(op, carries[0])}, {}}; }).carries[0];
  };
  graph.output("a", loop(Op::tanh));
  graph.output("b", loop(Op::tanh));
  graph.output("c", loop(Op::sine));
  Graph out = share_common(graph);
  EXPECT_EQ(out.nodes().size(), 3u);
  EXPECT_EQ(out.outputs()[0].value, out.outputs()[1].value);
  EXPECT_NE(out.outputs()[0].value, out.outputs()[2].value);
}

}  // namespace
}  // namespace tutti
