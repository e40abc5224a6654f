#include "tests/transform/before_after.h"

namespace tutti {
namespace {

Graph fold_padding_away(const Graph& graph) { return remove_dead(fold_padding(graph)); }

std::string pooled(std::string_view first, std::string_view number, std::string_view low, std::string_view own_low,
                   std::string_view kind = "max") {
  return R"(graph { %x = parameter {role = "input", name = "x"} : f32[1, 4, 5, 2] %n = constant <)" + std::string(number) + "> : f32[] " +
         std::string(first) + "%p = pad(%a, %n) {low = " + std::string(low) +
         R"(, high = [0, 1, 0, 0], interior = [0, 0, 0, 0]} %y = reduce_window(%p) {kind = ")" + std::string(kind) +
         R"(", window = [1, 3, 3, 1], strides = [1, 2, 1, 1], base_dilation = [1, 1, 1, 1], window_dilation = [1, 1, 1, 1], low = )" +
         std::string(own_low) + R"(, high = [0, 0, 1, 0]} return %y "y" })";
}

size_t pads(std::string_view text) {
  size_t out = 0;
  Graph graph = fold_padding_away(parse_graph(text));
  verify(graph);
  for (const Node& node : graph.nodes()) out += node.op == Op::pad;
  return out;
}

constexpr std::string_view relu =
    "%zero = constant <0> : f32[] %z = broadcast_in_dim(%zero) {shape = [1, 4, 5, 2], dimensions = []} %a = maximum(%x, %z) ";
constexpr std::string_view plain = "%a = abs(%x) ";
constexpr std::string_view negative = "%a = negate(%x) ";

TEST(FoldPadding, zeros_become_a_convolutions_own_padding) {
  constexpr std::string_view before = R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[1, 4, 5, 1]
    %k = constant <1, 2, -3, 4, 0.5, 6, 7, -8, 9> : f32[3, 3, 1, 1]
    %n = constant <0> : f32[]
    %p = pad(%x, %n) {low = [0, 1, 0, 0], high = [0, 1, 2, 0], interior = [0, 0, 0, 0]}
    %y = convolution(%p, %k) {strides = [1, 2], low = [0, 1], high = [0, 0], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1}
    return %y "y"
  })";
  expect_after(fold_padding_away, before, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[1, 4, 5, 1]
    %k = constant <1, 2, -3, 4, 0.5, 6, 7, -8, 9> : f32[3, 3, 1, 1]
    %y = convolution(%x, %k) {strides = [1, 2], low = [1, 1], high = [1, 2], lhs_dilation = [1, 1], rhs_dilation = [1, 1], groups = 1}
    return %y "y"
  })");
  expect_exact(fold_padding_away, before);
}

TEST(FoldPadding, other_numbers_channels_and_holes_stay) {
  auto text = [](std::string_view number, std::string_view pad, std::string_view kernel, std::string_view dilation) {
    return R"(graph { %x = parameter {role = "input", name = "x"} : f32[1, 4, 5, 1] %k = parameter {role = "weight", name = "k"} : f32[)" +
           std::string(kernel) + "] %n = constant <" + std::string(number) + "> : f32[] %p = pad(%x, %n) " + std::string(pad) +
           " %y = convolution(%p, %k) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = " + std::string(dilation) +
           R"(, rhs_dilation = [1, 1], groups = 1} return %y "y" })";
  };
  constexpr std::string_view rows = "{low = [0, 1, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0]}";
  EXPECT_EQ(pads(text("0", rows, "1, 1, 1, 1", "[1, 1]")), 0u);
  EXPECT_EQ(pads(text("1", rows, "1, 1, 1, 1", "[1, 1]")), 1u);
  EXPECT_EQ(pads(text("0", rows, "1, 1, 1, 1", "[2, 1]")), 1u);
  EXPECT_EQ(pads(text("0", "{low = [0, 0, 0, 1], high = [0, 0, 0, 0], interior = [0, 0, 0, 0]}", "1, 1, 2, 1", "[1, 1]")), 1u);
  EXPECT_EQ(pads(text("0", "{low = [0, -1, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0]}", "1, 1, 1, 1", "[1, 1]")), 1u);
  EXPECT_EQ(pads(text("0", "{low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 1, 0, 0]}", "1, 1, 1, 1", "[1, 1]")), 1u);
}

TEST(FoldPadding, what_cannot_be_the_maximum_becomes_a_pools_own_padding) {
  EXPECT_EQ(pads(pooled(negative, "-inf", "[0, 1, 1, 0]", "[0, 0, 0, 0]")), 0u);
  EXPECT_EQ(pads(pooled(relu, "0", "[0, 1, 1, 0]", "[0, 0, 0, 0]")), 0u);
  EXPECT_EQ(pads(pooled(plain, "0", "[0, 1, 1, 0]", "[0, 0, 1, 0]")), 0u);
  expect_exact(fold_padding_away, pooled(negative, "-inf", "[0, 1, 1, 0]", "[0, 0, 0, 0]"));
  expect_exact(fold_padding_away, pooled(plain, "0", "[0, 1, 1, 0]", "[0, 0, 1, 0]"));
}

TEST(FoldPadding, what_could_be_the_maximum_stays) {
  EXPECT_EQ(pads(pooled(negative, "0", "[0, 1, 1, 0]", "[0, 0, 0, 0]")), 1u);
  EXPECT_EQ(pads(pooled(relu, "0", "[0, 3, 1, 0]", "[0, 0, 0, 0]")), 1u);  // a window of padding alone
  EXPECT_EQ(pads(pooled(relu, "0", "[0, 1, 2, 0]", "[0, 0, 1, 0]")), 1u);
  EXPECT_EQ(pads(pooled(relu, "1", "[0, 1, 1, 0]", "[0, 0, 0, 0]")), 1u);
  EXPECT_EQ(pads(pooled(relu, "0", "[0, 1, 1, 0]", "[0, 0, 0, 0]", "add")), 1u);
}

}  // namespace
}  // namespace tutti
