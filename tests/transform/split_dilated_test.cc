#include <fmt/format.h>

#include "tests/transform/before_after.h"

namespace tutti {
namespace {

// Of a finite kernel: an infinite one makes NaN of the zeros between pixels, and there are none of them afterwards.
std::string dilated(std::string_view x, const Ints& kernel, std::string_view attributes) {
  std::string numbers;
  for (int64_t i = 0; i < Shape(kernel).elements(); ++i) numbers += fmt::format("{}{}", i == 0 ? "" : ", ", (i * 7 % 11 - 5) * 0.25);
  return fmt::format(R"(graph {{ %x = parameter {{role = "input", name = "x"}} : f32[{}]
    %k = constant <{}> : f32[{}]
    %y = convolution(%x, %k) {{{}}} return %y "y" }})",
                     x, numbers, fmt::join(kernel, ", "), attributes);
}

size_t holes(const Graph& graph) {
  size_t out = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::convolution) continue;
    const Ints& dilation = node.attributes.ints("lhs_dilation");
    out += std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d > 1; });
  }
  return out;
}

// Numbers that are not finite reach the same results: nothing is multiplied with a zero that was not there.
TEST(SplitDilated, every_remainder_has_the_taps_that_meet_a_pixel) {
  for (int64_t dilation : {2, 3, 5}) {
    for (int64_t kernel : {1, 2, 3, 4, 5, 7}) {
      for (int64_t low : {-2, 0, 1, 2, 3, 6}) {
        for (int64_t high : {-1, 0, 4}) {
          if (6 * dilation + 1 + low + high < kernel) continue;
          const std::string text = dilated("2, 7, 3", {kernel, 3, 4},
                                           fmt::format("strides = [1], low = [{}], high = [{}], lhs_dilation = [{}], rhs_dilation = [1], "
                                                       "groups = 1",
                                                       low, high, dilation));
          EXPECT_TRUE(has_dilated(parse_graph(text)));
          EXPECT_EQ(holes(split_dilated(parse_graph(text))), 0u);
          expect_exact(split_dilated, text);
        }
      }
    }
  }
}

TEST(SplitDilated, images_and_volumes) {
  expect_exact(split_dilated,
               dilated("2, 4, 5, 3", {3, 2, 3, 6},
                       "strides = [1, 1], low = [1, 1], high = [2, 1], lhs_dilation = [2, 2], rhs_dilation = [1, 1], groups = 1"));
  expect_exact(split_dilated,
               dilated("1, 4, 5, 3", {2, 4, 3, 2},
                       "strides = [1, 1], low = [0, 2], high = [0, 2], lhs_dilation = [1, 3], rhs_dilation = [1, 1], groups = 1"));
  expect_exact(split_dilated, dilated("1, 3, 2, 4, 2", {3, 3, 3, 2, 3},
                                      "strides = [1, 1, 1], low = [1, 2, 0], high = [1, 1, 2], lhs_dilation = [2, 2, 3], rhs_dilation = "
                                      "[1, 1, 1], groups = 1"));
}

// All remainders of a kernel as large as its stride meet one pixel: they are filters of one product.
TEST(SplitDilated, a_kernel_as_large_as_its_stride_is_one_convolution) {
  const Graph split = split_dilated(
      parse_graph(dilated("1, 4, 5, 3", {2, 2, 3, 6},
                          "strides = [1, 1], low = [1, 1], high = [1, 1], lhs_dilation = [2, 2], rhs_dilation = [1, 1], groups = 1")));
  EXPECT_EQ(std::count_if(split.nodes().begin(), split.nodes().end(), [](const Node& node) { return node.op == Op::convolution; }), 1);
}

TEST(SplitDilated, strides_groups_dilated_kernels_and_wide_gaps_stay) {
  for (const char* rest : {"strides = [2], lhs_dilation = [2], rhs_dilation = [1], groups = 1",
                           "strides = [1], lhs_dilation = [2], rhs_dilation = [2], groups = 1",
                           "strides = [1], lhs_dilation = [2], rhs_dilation = [1], groups = 2",
                           "strides = [1], lhs_dilation = [1], rhs_dilation = [1], groups = 1",
                           "strides = [1], lhs_dilation = [1000000], rhs_dilation = [1], groups = 1"}) {
    const bool grouped = std::string_view(rest).ends_with("2");
    const std::string text = dilated("1, 7, 4", {3, grouped ? 2 : 4, 4}, std::string("low = [1], high = [1], ") + rest);
    EXPECT_FALSE(has_dilated(parse_graph(text)));
    expect_unchanged(split_dilated, text);
  }
}

}  // namespace
}  // namespace tutti
