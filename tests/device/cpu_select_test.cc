// Which steps the cpu device makes of a graph.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/device/run_graph.h"
#include "tutti/device/cpu/candidate.h"
#include "tutti/device/sequence.h"
#include "tutti/graph/compose.h"

namespace tutti::cpu {
namespace {

std::vector<std::string> step_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Step& step : select_steps(graph)) names.push_back(step.name);
  return names;
}

using Names = std::vector<std::string>;

void expect_same_as_reference(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const Node* node : graph.parameters(Graph::Role::input)) {
    Tensor& tensor = inputs.emplace_back(graph.type(node->results[0]));
    for (size_t i = 0; i < tensor.as<float>().size(); ++i) tensor.as<float>()[i] = static_cast<float>(i % 13) / 4 - 1.5f;
  }
  auto want = Runner(graph, "reference")(inputs), got = Runner(graph, "cpu")(inputs);
  for (size_t k = 0; k < want.size(); ++k)
    for (size_t i = 0; i < want[k].as<float>().size(); ++i)
      EXPECT_NEAR(got[k].as<float>()[i], want[k].as<float>()[i], 1e-5) << k << " " << i;
}

TEST(cpu_select, elementwise_nodes_become_one_loop_and_broadcasts_vanish) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 8}}), bias = graph.input("b", {DType::f32, {8}}), y = graph.input("y", {DType::f32, {4, 8}});
  graph.output("z", maximum(x + bias + y, 0.0) * 0.5);
  EXPECT_EQ(step_names(graph), Names{"loop"});
  expect_same_as_reference(graph);
}

// The maxima of a softmax, which an accuracy beside it asks for: as they are, repeated, or in another shape.
TEST(cpu_select, what_others_read_of_a_softmax_is_made) {
  using Reads = Value (*)(Value x);
  for (const Reads reads :
       {Reads([](Value x) { return convert(argmax(x, -1), DType::f32); }),
        Reads([](Value x) { return convert(compare(x, reduce_max(x, {1}, true), Direction::EQ), DType::f32); }),
        Reads([](Value x) { return reduce_max(x, {1}, true) * 2.0; }), Reads([](Value x) { return reduce_max(x, {1}); })}) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {5, 4}});
    graph.output("y", softmax(x, {-1}));
    graph.output("z", reads(x));
    expect_same_as_reference(graph);
  }
}

// As in training, where kernels change; that of a kernel's own gradient is as large as an image.
TEST(cpu_select, convolutions_take_kernels_that_each_run_brings) {
  struct Case {
    Shape image, kernel;
    int64_t groups;
    Ints strides, lhs_dilation;
  };
  const Case cases[] = {{{2, 9, 8, 4}, {3, 3, 4, 20}, 1, {1, 1}, {1, 1}},  {{3, 12, 12, 16}, {3, 3, 16, 32}, 1, {2, 1}, {1, 1}},
                        {{4, 9, 9, 5}, {7, 7, 5, 6}, 1, {1, 1}, {1, 1}},   {{2, 5, 6, 8}, {3, 3, 8, 3}, 1, {1, 1}, {2, 2}},
                        {{2, 6, 6, 8}, {1, 1, 8, 24}, 1, {1, 1}, {1, 1}},  {{2, 6, 6, 8}, {3, 3, 4, 6}, 2, {1, 1}, {1, 1}},
                        {{2, 9, 9, 19}, {3, 3, 1, 19}, 19, {1, 1}, {1, 1}}};
  for (const Case& c : cases) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, c.image}), k = graph.input("k", {DType::f32, c.kernel});
    Value y = convolution(x, k, {.strides = c.strides, .low = {1, 1}, .high = {1, 1}, .lhs_dilation = c.lhs_dilation, .groups = c.groups});
    graph.output("y", maximum(y + graph.input("r", y.type()), 0.0));
    EXPECT_EQ(step_names(graph), Names{c.groups == 19 ? "depthwise convolution+residual+relu" : "convolution+residual+relu"});
    expect_same_as_reference(graph);
  }
}

TEST(cpu_select, activations_of_several_nodes_are_part_of_a_product) {
  const auto product = [](Graph& graph) {
    Tensor weights(DType::f32, {6, 24});
    for (size_t i = 0; i < 6 * 24; ++i) weights.as<float>()[i] = static_cast<float>(i % 11) / 8 - 0.6f;
    return matmul(graph.input("x", {DType::f32, {5, 6}}), graph.constant(weights));
  };
  const std::pair<std::string, Value (*)(Value)> rows[] = {
      {"matmul+silu", [](Value x) { return x * logistic(x); }},
      {"matmul+gelu", [](Value x) { return (x * 0.5) * (erf(x * 0.70710678118) + 1.0); }},
      {"matmul+hard_silu", [](Value x) { return x * (minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0); }},
      {"matmul+leaky_relu", [](Value x) { return select(compare(x, 0.0, Direction::GE), x, x * 0.25); }},
  };
  for (const auto& [name, activation] : rows) {
    Graph graph;
    graph.output("y", activation(product(graph)));
    EXPECT_EQ(step_names(graph), Names{name});
    expect_same_as_reference(graph);
  }
  // What someone else reads on the way has to be made.
  Graph graph;
  Value x = product(graph);
  graph.output("y", x * logistic(x));
  graph.output("x", x);
  EXPECT_EQ(step_names(graph), (Names{"matmul", "loop"}));
  expect_same_as_reference(graph);
}

// MobileNet's block.
Graph inverted_residual(int64_t size) {
  Graph graph;
  auto weights = [&](const Shape& shape) {
    Tensor tensor(DType::f32, shape);
    for (size_t i = 0; i < tensor.as<float>().size(); ++i) tensor.as<float>()[i] = static_cast<float>(i % 11) / 32 - 0.15f;
    return graph.constant(tensor);
  };
  auto convolve = [](Value x, Value kernel, int64_t margin, int64_t groups) {
    return convolution(x, kernel, {.strides = {1, 1}, .low = {margin, margin}, .high = {margin, margin}, .groups = groups});
  };
  Value x = graph.input("x", {DType::f32, {1, size, size, 4}});
  Value wide = minimum(maximum(convolve(x, weights({1, 1, 4, 64}), 0, 1), 0.0), 6.0);
  Value filtered = maximum(convolve(wide, weights({3, 3, 1, 64}), 1, 64), 0.0);
  graph.output("y", convolve(filtered, weights({1, 1, 64, 4}), 0, 1) + x);
  return graph;
}

TEST(cpu_select, a_depthwise_convolution_takes_its_neighbours_where_images_are_large) {
  EXPECT_EQ(step_names(inverted_residual(48)), Names{"separable convolution+residual"});
  expect_same_as_reference(inverted_residual(48));
  EXPECT_EQ(step_names(inverted_residual(12)), (Names{"convolution+relu+clip", "depthwise convolution+relu", "convolution+residual"}));
}

// [members, samples, features] as a stacked ensemble has them.
struct StackedLayers {
  Graph graph;
  Value weights(Shape shape) {
    Tensor tensor(DType::f32, shape);
    for (size_t i = 0; i < tensor.as<float>().size(); ++i) tensor.as<float>()[i] = static_cast<float>(i * 7 % 23) / 23 - 0.4f;
    return graph.parameter(Graph::Role::weight, "w", tensor.type(), tensor);
  }
};

TEST(cpu_select, products_of_known_matrices_take_a_bias_along_and_an_activation) {
  for (int64_t samples : {1, 3})
    for (int64_t columns : {1, 20})
      for (const bool shared : {false, true}) {  // a bias each, or one of all
        StackedLayers made;
        Value x = made.graph.input("x", {DType::f32, {4, samples, 6}});
        Value y = dot_general(x, made.weights({4, 6, columns}), {{0}, {0}, {2}, {1}});
        Value bias = shared ? broadcast_in_dim(made.weights({columns}), y.shape(), {2})
                            : broadcast_in_dim(made.weights({4, columns}), y.shape(), {0, 2});
        made.graph.output("y", maximum(y + bias, 0.0));
        EXPECT_EQ(step_names(made.graph), Names{"batched matmul+bias+relu"});
        expect_same_as_reference(made.graph);
      }
}

// The first layer of members that read the same sample is one wide product.
TEST(cpu_select, a_wide_product_that_is_cut_into_members_takes_their_biases_along) {
  for (const bool shared : {false, true}) {
    StackedLayers made;
    Value x = made.graph.input("x", {DType::f32, {1, 6}});
    Value y = reshape(dot_general(x, made.weights({6, 4, 20}), {{}, {}, {1}, {0}}), {4, 1, 20});
    Value bias = shared ? broadcast_in_dim(made.weights({20}), y.shape(), {2}) : broadcast_in_dim(made.weights({4, 20}), y.shape(), {0, 2});
    made.graph.output("y", maximum(y + bias, 0.0));
    EXPECT_EQ(step_names(made.graph), Names{"matmul+bias+relu"});
    expect_same_as_reference(made.graph);
  }
}

// A dense layer in training: x W + b, and the gradients x^T g and (g W^T where the layer before let something through).
TEST(cpu_select, products_of_values_take_a_bias_along_and_read_small_matrices_by_columns) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {3, 12, 8}}), w = graph.input("w", {DType::f32, {3, 8, 16}}),
        b = graph.input("b", {DType::f32, {3, 16}}), g = graph.input("g", {DType::f32, {3, 12, 16}});
  const auto product = [](Value left, Value right) { return dot_general(left, right, {{0}, {0}, {2}, {1}}); };
  graph.output("y", maximum(product(x, w) + broadcast_in_dim(b, {3, 12, 16}, {0, 2}), 0.0));
  graph.output("dw", product(transpose(x, {0, 2, 1}), g));
  const Value dx = product(g, transpose(w, {0, 2, 1}));
  graph.output("dx", select(compare(x, 0, Direction::GT), dx, full(graph, x.type(), 0)));
  const Names names = step_names(graph);
  EXPECT_EQ(names, (Names{"batched matmul+bias+relu", "batched matmul", "copy", "batched matmul+gate"}));
  expect_same_as_reference(graph);
}

TEST(cpu_select, copies_are_shared_between_threads) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {300, 40, 31}}), y = graph.input("y", {DType::f32, {300, 40, 17}});
  graph.output("joined", concatenate({x, y}, 2));
  graph.output("turned", transpose(x, {2, 0, 1}));
  graph.output("padded", pad(x, 0.5, {1, 0, 2}, {0, 3, 0}));
  graph.output("backwards", reverse(x, {0, 2}));
  for (const Step& step : select_steps(graph, {.threads = 3})) {
    EXPECT_EQ(step.name, "copy");
    EXPECT_EQ(step.threads, 3);
    EXPECT_FALSE(step.fallback);
  }
  expect_same_as_reference(graph);
}

// By what there is to do for each thread: FLOPs of a product, bytes of a matrix that one row is multiplied with, elements of a loop.
TEST(cpu_select, threads_by_the_work) {
  const auto threads = [](int64_t rows, int64_t depth, int64_t columns) {
    Graph graph;
    Value weights = graph.constant(Tensor(DType::f32, {depth, columns}));
    graph.output("y", matmul(graph.input("x", {DType::f32, {rows, depth}}), weights));
    return select_steps(graph, {.threads = 4}).at(0).threads;
  };
  EXPECT_EQ(threads(1, 64, 64), 1);
  EXPECT_EQ(threads(16, 128, 128), 1);
  EXPECT_EQ(threads(64, 256, 256), 4);
  EXPECT_EQ(threads(1, 512, 512), 4);
  EXPECT_EQ(threads(1, 4096, 4096), 4);
  for (int64_t elements : {1'000, 10'000'000}) {
    Graph graph;
    graph.output("y", tanh(graph.input("x", {DType::f32, {elements}})));
    EXPECT_EQ(select_steps(graph, {.threads = 4}).at(0).threads, elements == 1'000 ? 1 : 4);
    EXPECT_EQ(select_steps(graph, {.threads = 1}).at(0).threads, 1);
  }
  // A small kernel alone does not wake a thread; after a large one it is awake.
  for (bool large : {false, true}) {
    Graph graph;
    graph.output("y", tanh(graph.input("x", {DType::f32, {30'000}})));
    if (large) graph.output("z", tanh(graph.input("w", {DType::f32, {10'000'000}})));
    EXPECT_EQ(select_steps(graph, {.threads = 4}).at(0).threads, large ? 2 : 1);
  }
  // What one pass does of several nodes counts once: a moving average.
  for (int64_t elements : {15'000, 30'000}) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {elements}}), y = graph.input("y", {DType::f32, {elements}});
    graph.output("z", x + (y - x) * 0.1);
    graph.output("w", tanh(graph.input("v", {DType::f32, {10'000'000}})));
    EXPECT_EQ(select_steps(graph, {.threads = 4}).at(0).threads, elements == 15'000 ? 1 : 2);
  }
}

TEST(cpu_select, paths_that_meet_again_are_one_loop) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 8}});
  Value y = x + 1.0, square = y * y;
  graph.output("z", tanh(y) * logistic(square) + square);
  EXPECT_EQ(step_names(graph), Names{"loop"});
  expect_same_as_reference(graph);
}

TEST(cpu_select, a_value_with_readers_in_two_loops_is_made_once) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 8}});
  Value shared = exponential(x * 0.5);
  graph.output("a", shared + 1.0);
  graph.output("b", tanh(shared));
  EXPECT_EQ(step_names(graph), (Names{"loop", "loop", "loop"}));
  EXPECT_EQ(select_steps(graph)[0].results, std::vector<ValueId>{shared.id()});
  expect_same_as_reference(graph);
}

TEST(cpu_select, a_broadcast_that_two_loops_look_through_is_not_made) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 8}}), bias = broadcast_to(graph.input("b", {DType::f32, {8}}), x.shape());
  graph.output("a", x + bias);
  graph.output("b", x * bias);
  EXPECT_EQ(step_names(graph), (Names{"loop", "loop"}));
  expect_same_as_reference(graph);
  graph.output("c", bias);
  EXPECT_EQ(step_names(graph).size(), 3u);
  expect_same_as_reference(graph);
}

TEST(cpu_select, a_loop_gives_what_others_read_after_it) {
  Graph graph;  // the gates of a recurrent cell
  Value gates = graph.input("gates", {DType::f32, {2, 32}}), memory = graph.input("memory", {DType::f32, {2, 8}});
  auto gate = [&](int64_t i) { return slice(gates, {0, i * 8}, {2, (i + 1) * 8}); };
  Value next = logistic(gate(0)) * memory + logistic(gate(1)) * tanh(gate(2));
  graph.output("out", logistic(gate(3)) * tanh(next));
  graph.output("memory", next);
  EXPECT_EQ(step_names(graph), Names{"loop"});
  EXPECT_FALSE(select_steps(graph)[0].in_place);
  expect_same_as_reference(graph);
}

TEST(cpu_select, what_is_read_before_a_loop_is_made_before_it) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 8}}), y = x * 2.0;
  graph.output("z", tanh(y) + sum(y, {0}));
  EXPECT_EQ(step_names(graph), (Names{"loop", "reduce", "loop"}));
  expect_same_as_reference(graph);
}

TEST(cpu_select, loops_of_different_shapes_stay_apart) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 8}});
  graph.output("z", tanh(exponential(x)) + tanh(sum(x, {0}) + 1.0));
  EXPECT_EQ(step_names(graph), (Names{"reduce", "loop", "loop"}));
  expect_same_as_reference(graph);
}

TEST(cpu_select, softmax_is_one_step_unless_others_read_what_is_on_its_way) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 8}});
  Value powers = exponential(x - reduce(x, "max", {1}, true));
  graph.output("y", powers / sum(powers, {1}, true));
  EXPECT_EQ(step_names(graph), Names{"softmax"});
  expect_same_as_reference(graph);
  graph.output("powers", powers);
  EXPECT_EQ(step_names(graph), (Names{"reduce", "loop", "reduce", "loop"}));
  std::vector<Refusal> refusals;
  select_steps(graph, {.refusals = &refusals});
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].reason, "something else reads what exponential gives on the way");
  expect_same_as_reference(graph);
}

TEST(cpu_select, a_transposed_square_operand_is_not_overwritten) {
  Graph graph;
  Value x = exponential(graph.input("x", {DType::f32, {64, 64}}));
  Value turned = broadcast_in_dim(x, {64, 64}, {1, 0});
  graph.output("y", x - turned);
  for (const Step& step : select_steps(graph)) EXPECT_EQ(step.in_place, step.results[0] == x.id());
  expect_same_as_reference(graph);
}

// The work of a recurrent layer is all inside: a loop on one thread would leave the other cores idle.
TEST(cpu_select, what_a_loop_repeats_is_shared_between_threads) {
  constexpr int64_t units = 160;
  Tensor weights(DType::f32, {units, 4 * units});
  for (size_t i = 0; i < weights.as<float>().size(); ++i) weights.as<float>()[i] = static_cast<float>(i * 7919 % 101) / 505 - 0.1f;
  for (bool known : {true, false}) {
    for (int64_t rows : {1, 5, 70}) {
      Graph graph;
      const Value x = graph.input("x", {DType::f32, {6, rows, 4 * units}}), start = graph.input("h", {DType::f32, {rows, units}});
      const Value w = known ? graph.constant(weights) : graph.input("w", {DType::f32, weights.shape()});
      const auto out = scan({start}, {x}, {w}, 6, false, [&](Graph&, auto carries, auto slices, auto whole) {
        const Value z = matmul(carries[0], whole[0]) + slices[0];
        const auto gate = [&](int64_t i) { return slice(z, {0, i * units}, {rows, (i + 1) * units}); };
        return ScanStep{{logistic(gate(0)) * carries[0] + logistic(gate(1)) * tanh(gate(2))}, {tanh(gate(3))}};
      });
      graph.output("h", out.carries[0]);
      graph.output("y", out.stacked[0]);
      std::vector<Tensor> inputs;
      for (const Node* node : graph.parameters(Graph::Role::input)) {
        Tensor& tensor = inputs.emplace_back(graph.type(node->results[0]));
        for (size_t i = 0; i < tensor.as<float>().size(); ++i) tensor.as<float>()[i] = static_cast<float>(i * 31 % 17) / 80 - 0.1f;
      }
      const auto steps = select_steps(graph, {.threads = 3});
      const auto& loop = *std::find_if(steps.begin(), steps.end(), [](const Step& step) { return step.name == "scan"; });
      const auto inside = loop.kernel.bodies.at(0).steps->steps();
      EXPECT_TRUE(std::any_of(inside.begin(), inside.end(), [](const Step& step) { return step.threads > 1; }));
      const auto want = Runner(graph, "cpu", 1)(inputs);
      for (int threads : {2, 3}) {
        Runner run(graph, "cpu", threads);
        for (int round = 0; round < 3; ++round) {
          const auto got = run(inputs);
          for (size_t k = 0; k < want.size(); ++k) EXPECT_EQ(floats(got[k]), floats(want[k])) << known << " " << rows << " " << threads;
        }
      }
    }
  }
}

// A layer of `rows` sequences of `features`, whose states each begin as they are in `start`.
Graph recurrent(int64_t rows, int64_t features, int64_t units, bool with_bias, bool zeros) {
  const auto numbers = [](Shape shape) {
    Tensor out(DType::f32, std::move(shape));
    for (size_t i = 0; i < out.as<float>().size(); ++i) out.as<float>()[i] = static_cast<float>(i * 7919 % 101) / 505 - 0.1f;
    return out;
  };
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, rows, features}});
  Value z = dot_general(x, graph.constant(numbers({features, 2 * units})), {{}, {}, {2}, {0}});
  if (with_bias) z = z + graph.constant(numbers({2 * units}));
  const Value start = full(graph, {DType::f32, {rows, units}}, zeros ? 0.0 : 0.25);
  const auto out = scan({start}, {z}, {}, 4, false, [&](Graph& body, auto carries, auto slices, auto) {
    const Value sum = slices[0] + matmul(carries[0], body.constant(numbers({units, 2 * units})));
    const Value next = logistic(slice(sum, {0, 0}, {rows, units})) * tanh(slice(sum, {0, units}, {rows, 2 * units}));
    return ScanStep{{next}, {next}};
  });
  graph.output("y", out.stacked[0]);
  return graph;
}

// The input's product is made before the loop for few sequences, in each step for many: there both are one step.
TEST(cpu_select, a_sequence_gives_the_same_alone_and_among_others) {
  for (const bool with_bias : {false, true})
    for (const bool zeros : {false, true})
      for (const auto& [features, units] : {std::pair<int64_t, int64_t>{10, 150}, {3, 20}, {1, 70}, {200, 33}}) {
        std::vector<float> alone;
        for (const int64_t rows : {1, 2, 32, 67}) {
          const Graph graph = recurrent(rows, features, units, with_bias, zeros);
          Tensor x(DType::f32, {4, rows, features});
          for (size_t i = 0; i < x.as<float>().size(); ++i) {
            const size_t step = i / static_cast<size_t>(rows * features), feature = i % static_cast<size_t>(features),
                         row = i / static_cast<size_t>(features) % static_cast<size_t>(rows);
            x.as<float>()[i] = static_cast<float>((step * 31 + feature * 7) % 17 + row) / 9 - 1.0f;
          }
          const auto got = floats(Runner(graph, "cpu", 1)({x})[0]), want = floats(Runner(graph, "reference")({x})[0]);
          for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << features << " " << units << " " << rows;
          std::vector<float> first;
          for (int64_t step = 0; step < 4; ++step)
            first.insert(first.end(), got.begin() + step * rows * units, got.begin() + (step * rows + 1) * units);
          if (rows == 1) alone = first;
          EXPECT_EQ(first, alone) << features << " " << units << " " << rows << " " << with_bias << zeros;
        }
      }
}

// A state that begins as zeros, as those of recurrent layers do: its first product is none, unless a weight is infinite.
TEST(cpu_select, products_with_zeros_are_left_out) {
  for (int64_t columns : {3, 64, 100}) {
    for (int64_t rows : {1, 7}) {
      for (float first : {0.5f, std::numeric_limits<float>::infinity()}) {
        for (double begins : {0.0, 0.25}) {
          Graph graph;
          const Value x = graph.input("x", {DType::f32, {4, rows, columns}});
          Tensor weights(DType::f32, {columns, columns});
          for (size_t i = 0; i < weights.as<float>().size(); ++i) weights.as<float>()[i] = static_cast<float>(i * 31 % 17) / 80 - 0.1f;
          weights.as<float>()[0] = first;
          const Value start = full(graph, {DType::f32, {rows, columns}}, begins);
          const auto out = scan({start}, {x}, {}, 4, false, [&](Graph& body, auto carries, auto slices, auto) {
            const Value next = tanh(matmul(carries[0], body.constant(weights)) + slices[0]);
            return ScanStep{{next}, {next}};
          });
          graph.output("y", out.stacked[0]);
          std::vector<Tensor> inputs = {Tensor(DType::f32, {4, rows, columns})};
          for (size_t i = 0; i < inputs[0].as<float>().size(); ++i) inputs[0].as<float>()[i] = static_cast<float>(i % 13) / 40 - 0.1f;
          const auto want = floats(Runner(graph, "reference")(inputs)[0]), got = floats(Runner(graph, "cpu")(inputs)[0]);
          for (size_t i = 0; i < want.size(); ++i)
            ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : std::fabs(want[i] - got[i]) < 1e-5f)
                << columns << " " << rows << " " << first << " " << begins << " " << i << ": " << want[i] << ", " << got[i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti::cpu
