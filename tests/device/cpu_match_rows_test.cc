// Softmax and norms are found in graphs as written and after the passes, and give what the nodes give.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/device/random_data.h"
#include "tests/device/run_graph.h"
#include "tutti/device/cpu/loops/match_rows.h"
#include "tutti/graph/compose.h"
#include "tutti/transform/passes.h"

namespace tutti::cpu {
namespace {

using Kind = RowMatch::Kind;

Graph after_passes(const Graph& graph) {
  FoldMemo memo;
  auto passes = inference_passes([](const Graph& constants) { return Runner(constants, "reference")({}); }, memo);
  return run_passes(graph, passes, {.verify = true});
}

const Node& root_of(const Graph& graph) { return graph.nodes()[static_cast<size_t>(graph.producer(graph.outputs()[0].value))]; }

void expect_match(const Graph& graph, Kind kind) {
  std::vector<const Node*> inputs = graph.parameters(Graph::Role::input);
  std::vector<Tensor> values;
  values.reserve(inputs.size());
  for (const Node* node : inputs) values.push_back(random_tensor(graph.type(node->results[0]), static_cast<unsigned>(values.size())));
  auto match = match_rows(graph, root_of(graph));
  ASSERT_TRUE(match) << print_graph(graph);
  EXPECT_EQ(match->kind, kind);
  // Every node but parameters, constants and views of operands is covered.
  for (const Node& node : graph.nodes()) {
    bool covered = std::find(match->nodes.begin(), match->nodes.end(), &node) != match->nodes.end();
    bool view = node.op == Op::reshape || node.op == Op::broadcast_in_dim || row(node.op).op_class == OpClass::leaf;
    EXPECT_TRUE(covered || view) << name(node.op) << "\n" << print_graph(graph);
  }
  // Operands are inputs, seen through reshapes.
  std::vector<const std::byte*> from;
  for (ValueId id : match->operands) {
    const Node* node = &graph.nodes()[static_cast<size_t>(graph.producer(id))];
    while (node->op == Op::reshape) node = &graph.nodes()[static_cast<size_t>(graph.producer(node->operands[0]))];
    auto input = std::find(inputs.begin(), inputs.end(), node);
    ASSERT_NE(input, inputs.end());
    from.push_back(values[static_cast<size_t>(input - inputs.begin())].bytes().data());
  }
  auto want = floats(Runner(graph, "reference")(values)[0]);
  std::vector<float> got(want.size());
  auto* to = reinterpret_cast<std::byte*>(got.data());
  make_rows(*match, 1).run({from.data(), &to, nullptr});
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-6 * std::max(1.0f, std::fabs(want[i])));
}

template <class Build>
void expect_found(Kind kind, const Build& build) {
  for (const Shape& shape : {Shape{1, 10}, Shape{4, 10}, Shape{2, 5, 8}, Shape{1, 5, 12}, Shape{1, 2, 3, 7}, Shape{16}}) {
    Graph graph;
    graph.output("y", build(graph, graph.input("x", {DType::f32, shape})));
    expect_match(graph, kind);
    expect_match(after_passes(graph), kind);
  }
}

TEST(cpu_match_rows, softmax) {
  expect_found(Kind::softmax, [](Graph&, Value x) { return softmax(x, {-1}); });
}

TEST(cpu_match_rows, log_softmax) {
  expect_found(Kind::log_softmax, [](Graph&, Value x) { return log_softmax(x, {-1}); });
}

TEST(cpu_match_rows, softmax_of_several_trailing_axes) {
  Graph graph;
  graph.output("y", softmax(graph.input("x", {DType::f32, {3, 4, 5}}), {1, 2}));
  expect_match(graph, Kind::softmax);
  expect_match(after_passes(graph), Kind::softmax);
}

// As keras/layers/normalization.cc writes it.
Value normalized(Value x, Value scale, Value offset) {
  Value factor = rsqrt(variance(x, {-1}, true) + 1e-3);
  if (scale) factor = factor * scale;
  Value shift = -mean(x, {-1}, true) * factor;
  if (offset) shift = shift + offset;
  return x * factor + shift;
}

TEST(cpu_match_rows, layer_norms) {
  for (unsigned parts = 0; parts < 4; ++parts) {
    expect_found(Kind::layer_norm, [parts](Graph& graph, Value x) {
      Ints extents(static_cast<size_t>(x.rank()), 1);
      extents.back() = x.extent(-1);
      auto weight = [&] { return reshape(graph.input("w", {DType::f32, {x.extent(-1)}}), extents); };
      return normalized(x, (parts & 1) != 0 ? weight() : Value(), (parts & 2) != 0 ? weight() : Value());
    });
  }
}

TEST(cpu_match_rows, root_mean_square_norms) {
  expect_found(Kind::rms_norm, [](Graph& graph, Value x) {
    return x * rsqrt(mean(square(x), {-1}, true) + 1e-6) * graph.input("w", {DType::f32, {x.extent(-1)}});
  });
}

TEST(cpu_match_rows, what_only_looks_alike_is_left_alone) {
  const auto expect_none = [](auto build) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {5, 5}}), y = graph.input("y", {DType::f32, {5, 5}});
    graph.output("z", build(x, y));
    EXPECT_FALSE(match_rows(graph, root_of(graph))) << print_graph(graph);
    Graph simple = after_passes(graph);
    EXPECT_FALSE(match_rows(simple, root_of(simple))) << print_graph(simple);
  };
  expect_none([](Value x, Value) { return softmax(x, {0}); });
  expect_none([](Value x, Value y) {
    return exponential(x - reduce(y, "max", {1}, true)) / sum(exponential(x - reduce(y, "max", {1}, true)), {1}, true);
  });
  expect_none([](Value x, Value) {
    Value powers = exponential(x - reduce(x, "max", {1}, true));
    return powers / sum(powers, {0}, true);
  });
  expect_none([](Value x, Value) {
    Value powers = exponential(x - reduce(x, "max", {1}));  // a column's maximum, by the shapes
    return powers / sum(powers, {1}, true);
  });
  expect_none([](Value x, Value) {
    Value powers = exponential(x - reduce(x, "min", {1}, true));
    return powers / sum(powers, {1}, true);
  });
  expect_none([](Value x, Value y) {
    Value factor = rsqrt(variance(y, {1}, true) + 1e-3);
    return x * factor + -mean(x, {1}, true) * factor;
  });
  expect_none([](Value x, Value) {
    Value factor = rsqrt(sum(square(x - mean(x, {1}, true)), {1}, true) / 4.0 + 1e-3);  // of a sample: n - 1
    return x * factor + -mean(x, {1}, true) * factor;
  });
}

}  // namespace
}  // namespace tutti::cpu
