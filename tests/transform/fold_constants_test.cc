#include <fmt/format.h>

#include "tests/transform/before_after.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

Graph fold_constants_away(const Graph& graph) {
  FoldMemo memo;
  return remove_dead(fold_constants(graph, evaluate_on_reference, memo));
}

Tensor ramp(Shape shape) {
  Tensor out(DType::f32, std::move(shape));
  float next = 0;
  for (float& x : out.as<float>()) x = next += 0.25f;
  return out;
}

TEST(FoldConstants, computes_what_depends_on_constants_alone) {
  constexpr std::string_view before = R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[2]
    %0 = constant <1, 2> : f32[2]
    %1 = constant <3> : f32[]
    %2 = broadcast_in_dim(%1) {shape = [2], dimensions = []}
    %3 = add(%0, %2)
    %4 = iota {dimension = 0} : f32[2]
    %5 = multiply(%3, %4)
    %6 = add(%x, %5)
    return %6 "y"
  })";
  expect_after(fold_constants_away, before, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[2]
    %0 = constant <0, 5> : f32[2]
    %1 = add(%x, %0)
    return %1 "y"
  })");
  expect_exact(fold_constants_away, before);
}

TEST(FoldConstants, leaves_broadcasts_to_their_readers_but_folds_what_they_read) {
  expect_after(fold_constants_away, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[2, 2]
    %0 = constant <1, 2> : f32[2]
    %1 = negate(%0)
    %2 = broadcast_in_dim(%1) {shape = [2, 2], dimensions = [1]}
    %3 = add(%x, %2)
    return %3 "y"
  })",
               R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[2, 2]
    %0 = constant <-1, -2> : f32[2]
    %1 = broadcast_in_dim(%0) {shape = [2, 2], dimensions = [1]}
    %2 = add(%x, %1)
    return %2 "y"
  })");
}

TEST(FoldConstants, does_not_make_much_of_little) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {1000, 1000}});
  Value column = graph.constant(ramp({1000, 1})), row = graph.constant(ramp({1, 1000}));
  graph.output("y", x + (column + row) * 2.0);  // 4 MB out of 8 KB
  Graph out = fold_constants_away(graph);
  for (const Node& node : out.nodes())
    if (node.op == Op::constant) {
      EXPECT_LE(node.literal.type().bytes(), 4000);
    }
  // Beyond small values there is a budget for all of them together.
  Graph many;
  for (int i = 0; i < 40; ++i) many.output(fmt::format("y{}", i), iota(many, {DType::f32, {500, 500}}, 0) * (i + 0.5));
  int64_t bytes = 0;
  Graph folded = fold_constants_away(many);
  for (const Node& node : folded.nodes())
    if (node.op == Op::constant) bytes += node.literal.type().bytes();
  EXPECT_GE(bytes, 4 << 20);
  EXPECT_LE(bytes, 17 << 20);
}

TEST(FoldConstants, folds_weights_that_have_data_and_no_others) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {3}});
  Value known = graph.parameter(Graph::Role::weight, "known", {DType::f32, {3}}, ramp({3}));
  Value unknown = graph.parameter(Graph::Role::weight, "unknown", {DType::f32, {3}});
  Value state = graph.parameter(Graph::Role::state, "state", {DType::f32, {3}}, ramp({3}));
  graph.output("a", x + tanh(known));
  graph.output("b", x + tanh(unknown));
  graph.output("c", x + tanh(state));
  Graph out = fold_constants_away(graph);
  int tanhs = 0;
  for (const Node& node : out.nodes()) tanhs += node.op == Op::tanh;
  EXPECT_EQ(tanhs, 2);
  EXPECT_EQ(out.parameters(Graph::Role::weight).size(), 1u);
}

TEST(FoldConstants, reshapes_share_the_bytes_of_their_weight) {
  Tensor data = ramp({4, 6});
  Graph graph;
  Value w = graph.parameter(Graph::Role::weight, "w", data.type(), data);
  graph.output("y", reshape(w, {24}));
  Graph out = fold_constants_away(graph);
  ASSERT_EQ(out.nodes().size(), 1u);
  EXPECT_EQ(out.nodes()[0].literal.bytes().data(), std::as_const(data).bytes().data());
}

// y = x . (w^T * 2), at a batch size.
Graph model(const Tensor& weight, int64_t batch) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {batch, 6}});
  Value w = graph.parameter(Graph::Role::weight, "w", weight.type(), weight);
  graph.output("y", dot_general(x, transpose(w, {1, 0}) * 2.0, {{}, {}, {1}, {0}}));
  return graph;
}

const std::byte* folded_bytes(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op == Op::constant) return node.literal.bytes().data();
  return nullptr;
}

TEST(FoldConstants, programs_of_one_model_share_folded_weights) {
  Tensor weight = ramp({4, 6}), other = ramp({4, 6});
  FoldMemo memo;
  int evaluated = 0;
  Evaluate counted = [&](const Graph& graph) {
    ++evaluated;
    return evaluate_on_reference(graph);
  };
  Graph one = fold_constants(model(weight, 1), counted, memo), many = fold_constants(model(weight, 32), counted, memo);
  EXPECT_EQ(evaluated, 1);
  EXPECT_NE(folded_bytes(remove_dead(one)), nullptr);
  EXPECT_EQ(folded_bytes(remove_dead(one)), folded_bytes(remove_dead(many)));
  fold_constants(model(other, 1), counted, memo);  // equal numbers elsewhere are another weight
  EXPECT_EQ(evaluated, 2);
}

TEST(FoldConstants, tables_of_one_shape_are_not_remembered) {
  FoldMemo memo;
  int evaluated = 0;
  Evaluate counted = [&](const Graph& graph) {
    ++evaluated;
    return evaluate_on_reference(graph);
  };
  Graph graph;
  Value table = iota(graph, {DType::f32, {30, 30}}, 0) * 0.5;
  graph.output("a", table);
  graph.output("b", tanh(table));
  for (int run = 1; run < 3; ++run) {
    fold_constants(graph, counted, memo);
    EXPECT_EQ(evaluated, 2 * run);  // the table once for both
  }
}

TEST(FoldConstants, long_chains_are_computed_in_stages) {
  Graph graph;
  Value x = graph.constant(ramp({2}));
  for (int i = 0; i < 20000; ++i) x = x * 0.5 + 1.0;
  graph.output("y", x);
  Graph out = fold_constants_away(graph);
  ASSERT_EQ(out.nodes().size(), 1u);
  EXPECT_EQ(floats(out.nodes()[0].literal), (std::vector<float>{2, 2}));
}

TEST(FoldConstants, works_inside_of_scans) {
  expect_after(fold_constants_away, in_a_scan("%i = constant <1, -1> : f32[2] %k = abs(%i) %c = add(%0, %k)"),
               in_a_scan("%k = constant <1, 1> : f32[2] %c = add(%0, %k)"));
}

}  // namespace
}  // namespace tutti
