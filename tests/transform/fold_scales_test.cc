#include <set>

#include "tests/transform/before_after.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

// x * s + t, s and t along the last axis.
Value normalize(Value x) {
  int64_t channels = x.extent(-1);
  return (x - weight(x.graph(), {channels}, 0.2f)) / weight(x.graph(), {channels}, 0.5f) * weight(x.graph(), {channels}, -1.f) +
         weight(x.graph(), {channels}, 0.3f);
}

// The ops that are not leaves or broadcasts, in the order of the alphabet.
std::string ops(const Graph& graph) {
  std::multiset<std::string> found;
  for (const Node& node : graph.nodes())
    if (row(node.op).op_class != OpClass::leaf && node.op != Op::broadcast_in_dim) found.insert(std::string(name(node.op)));
  std::string out;
  for (const std::string& op : found) out += (out.empty() ? "" : " ") + op;
  return out;
}

Graph fold_scales_away(const Graph& graph) {
  FoldMemo memo;
  Pass passes[] = {{"simplify", simplify},
                   {"fold_scales", fold_scales},
                   {"fold_constants", [&](const Graph& g) { return fold_constants(g, evaluate_on_reference, memo); }},
                   {"remove_dead", remove_dead}};
  return run_passes(graph, passes, {.verify = true});
}

// Which ops remain of a graph, whose results stay close.
void expect_ops(const Graph& graph, std::string_view expected) {
  Graph after = fold_scales_away(graph);
  EXPECT_EQ(ops(after), expected) << print_graph(graph) << print_graph(after);
  expect_same_results(graph, after, 1e-5, false);
}

// A model of one input to one output.
template <class F>
Graph graph_of(Shape input, F&& make) {
  Graph graph;
  graph.output("y", make(graph.input("x", {DType::f32, std::move(input)})));
  return graph;
}

ConvolutionDims same(int64_t groups = 1) { return {{1, 1}, {1, 1}, {1, 1}, {}, {}, groups}; }
ConvolutionDims valid(int64_t groups = 1) { return {{1, 1}, {0, 0}, {0, 0}, {}, {}, groups}; }
Value dense(Value x, Shape kernel) { return dot_general(x, weight(x.graph(), std::move(kernel), -0.7f), {{}, {}, {x.rank() - 1}, {0}}); }

TEST(FoldScales, batch_normalization_goes_into_the_convolution_before_it) {
  for (int64_t batch : {1, 3}) {
    auto with_kernel = [&](Shape kernel, int64_t groups) {
      return graph_of({batch, 5, 5, 4},
                      [&](Value x) { return tanh(normalize(convolution(x, weight(x.graph(), kernel, -0.6f), same(groups)))); });
    };
    expect_ops(with_kernel({3, 3, 4, 6}, 1), "add convolution tanh");
    expect_ops(with_kernel({3, 3, 1, 4}, 4), "add convolution tanh");  // depthwise
    expect_ops(with_kernel({3, 3, 1, 8}, 4), "add convolution tanh");
    expect_ops(with_kernel({3, 3, 2, 6}, 2), "add convolution tanh");
  }
}

TEST(FoldScales, batch_normalization_joins_the_bias) {
  expect_ops(graph_of({2, 5, 5, 4},
                      [](Value x) {
                        return normalize(convolution(x, weight(x.graph(), {3, 3, 4, 6}, -0.6f), same()) + weight(x.graph(), {6}, 0.1f));
                      }),
             "add convolution");
}

TEST(FoldScales, any_product_with_a_constant_takes_scales_along_its_own_axes) {
  expect_ops(graph_of({2, 4}, [](Value x) { return normalize(dense(x, {4, 6})); }), "add dot_general");
  // Heads: kernel [4, 2, 3], scale along both of its free axes.
  expect_ops(graph_of({2, 5, 4}, [](Value x) { return dense(x, {4, 2, 3}) * weight(x.graph(), {2, 3}, 0.5f); }), "dot_general");
  // One kernel for each of two batches.
  expect_ops(graph_of({2, 5, 4},
                      [](Value x) {
                        Value y = dot_general(x, weight(x.graph(), {2, 4, 3}, -0.5f), {{0}, {0}, {2}, {1}});
                        return y * weight(x.graph(), {2, 1, 3}, 0.5f);
                      }),
             "dot_general");
}

TEST(FoldScales, scales_along_other_axes_stay) {
  expect_ops(graph_of({2, 5, 4}, [](Value x) { return dense(x, {4, 6}) * weight(x.graph(), {5, 1}, 0.5f); }), "dot_general multiply");
  expect_ops(graph_of({1, 3, 3, 2},
                      [](Value x) {
                        return convolution(x, weight(x.graph(), {1, 1, 2, 3}, -0.6f), valid()) * weight(x.graph(), {3, 1, 1}, 0.4f);
                      }),
             "convolution multiply");
}

TEST(FoldScales, a_value_with_two_readers_is_not_computed_twice) {
  expect_ops(graph_of({2, 4},
                      [](Value x) {
                        Value y = dense(x, {4, 6});
                        return tanh(y) + y * weight(x.graph(), {6}, 0.5f);
                      }),
             "add dot_general multiply tanh");
  expect_ops(graph_of({2, 4},
                      [](Value x) {
                        Value y = dense(x, {4, 6}) + weight(x.graph(), {6}, 0.5f), z = y * weight(x.graph(), {6}, 0.4f);
                        return tanh(y) + z * weight(x.graph(), {6}, 0.3f);
                      }),
             "add add dot_general multiply multiply tanh");
}

TEST(FoldScales, a_normalized_input_goes_into_the_product_behind_it) {
  expect_ops(graph_of({2, 4}, [](Value x) { return dense(normalize(x), {4, 6}) + weight(x.graph(), {6}, 0.1f); }), "add dot_general");
  expect_ops(graph_of({2, 5, 5, 4},
                      [](Value x) {
                        return convolution(normalize(x), weight(x.graph(), {3, 3, 4, 6}, -0.6f), valid());
                      }),
             "add convolution");
  expect_ops(graph_of({2, 5, 5, 4},
                      [](Value x) {
                        return convolution(normalize(x), weight(x.graph(), {3, 3, 1, 4}, -0.6f), valid(4));
                      }),
             "add convolution");
  // A scale alone, and one with a zero, as Rescaling has.
  expect_ops(graph_of({2, 5, 5, 4},
                      [](Value x) {
                        return convolution(x * 0.3 + 0.0, weight(x.graph(), {3, 3, 4, 6}, -0.6f), same());
                      }),
             "convolution");
}

TEST(FoldScales, a_shift_does_not_pass_padding) {
  expect_ops(graph_of({2, 5, 5, 4},
                      [](Value x) {
                        return convolution(x + 0.5, weight(x.graph(), {3, 3, 4, 6}, -0.6f), same());
                      }),
             "add convolution");
  expect_ops(graph_of({2, 5, 5, 4},
                      [](Value x) {
                        return convolution(normalize(x), weight(x.graph(), {3, 3, 2, 6}, -0.6f), valid(2));
                      }),
             "add convolution divide multiply subtract");
}

TEST(FoldScales, the_number_of_attention_goes_into_the_projection) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 5, 4}});
  Value q = dense(x, {4, 2, 3}) + weight(graph, {2, 3}, 0.1f), k = dense(x, {4, 2, 3});
  graph.output("y", dot_general(q, k, {{0, 2}, {0, 2}, {3}, {3}}) / 3.0);
  expect_ops(graph, "add dot_general dot_general dot_general");
}

TEST(FoldScales, leaves_integers_and_unknown_kernels_alone) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 4}}), k = graph.input("k", {DType::f32, {4, 3}});
  graph.output("y", dot_general(x, k, {{}, {}, {1}, {0}}) * 3.0);
  Value i = graph.input("i", {DType::i32, {2, 2}});
  graph.output("z", dot_general(i, constant<int32_t>(graph, {2, 2}, {1, 2, 3, 4}), {{}, {}, {1}, {0}}) / 2.0);
  expect_ops(graph, "divide dot_general dot_general multiply");
}

}  // namespace
}  // namespace tutti
