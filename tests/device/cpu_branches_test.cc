#include "tutti/device/cpu/branches.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/device/random_data.h"
#include "tests/device/run_graph.h"
#include "tutti/graph/compose.h"

namespace tutti::cpu {
namespace {

Value dense(Value x, int64_t units, unsigned seed) {
  const int64_t depth = x.extent(-1);
  Graph& graph = x.graph();
  const Tensor kernel = Tensor::of<float>({depth, units}, random_floats(depth * units, -0.2f, 0.2f, seed));
  return matmul(x, graph.constant(kernel)) + constant<float>(graph, {units}, random_floats(units, -1, 1, seed + 1));
}

// Members of different depths on one input.
std::vector<Value> members(Value x, int count) {
  std::vector<Value> out;
  for (int m = 0; m < count; ++m) {
    Value h = x;
    for (int layer = 0; layer < 2 + m % 2; ++layer) h = maximum(dense(h, 96, static_cast<unsigned>(100 * m + layer)), 0);
    out.push_back(softmax(dense(h, 8, static_cast<unsigned>(100 * m + 50)), {-1}));
  }
  return out;
}

std::vector<std::string> names_of(const Graph& graph, int threads) {
  std::vector<std::string> names;
  for (const Step& step : select_steps(graph, {.threads = threads})) names.push_back(step.name);
  return names;
}

void expect_same(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const Node* node : graph.parameters(Graph::Role::input)) inputs.push_back(random_tensor(graph.type(node->results[0]), 7));
  const auto want = Runner(graph, "reference")(inputs);
  Runner run(graph, "cpu", 2);
  for (int round = 0; round < 3; ++round) {
    const auto got = run(inputs);
    for (size_t k = 0; k < want.size(); ++k)
      for (size_t i = 0; i < got[k].as<float>().size(); ++i)
        ASSERT_NEAR(got[k].as<float>()[i], want[k].as<float>()[i], 1e-4) << k << " " << i;
  }
}

TEST(cpu_branches, members_of_an_ensemble_run_side_by_side) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {64, 32}});
  graph.output("mean", mean(stack(members(x, 5), 0), {0}));
  const auto names = names_of(graph, 2);
  EXPECT_NE(std::find(names.begin(), names.end(), "branches"), names.end());
  EXPECT_EQ(std::count_if(names.begin(), names.end(), [](const auto& name) { return name.starts_with("matmul"); }), 0);
  expect_same(graph);
}

TEST(cpu_branches, what_comes_before_and_after_them_may_be_shared) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {64, 32}});
  const Value scaled = tanh(x * 0.5);
  const Value joined = dense(concatenate(members(scaled, 4), 1), 3, 5);  // a small layer behind them
  graph.output("y", joined);
  graph.output("scaled", scaled);
  EXPECT_NE(names_of(graph, 2), names_of(graph, 1));
  expect_same(graph);
}

TEST(cpu_branches, outputs_of_their_own_and_values_from_the_middle) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {64, 32}});
  const auto all = members(x, 4);
  for (size_t m = 0; m < all.size(); ++m) graph.output("y" + std::to_string(m), all[m]);
  graph.output("again", all[1]);
  graph.output("flat", reshape(all[2], {64 * 8}));
  EXPECT_NE(names_of(graph, 2), names_of(graph, 1));
  expect_same(graph);
}

// Kernels of what joins the branches read through their last nodes.
TEST(cpu_branches, broadcasts_slices_and_transposes_at_their_ends) {
  struct Case {
    const char* name;
    Value (*end)(Value x);
    Value (*join)(Value a, Value b);
  };
  const Case cases[] = {
      {"broadcast",
       [](Value x) {
         return broadcast_in_dim(x, {64, 64, 8}, {0, 2});
       },
       [](Value a, Value b) { return tanh(a + b); }},
      {"slice",
       [](Value x) {
         return slice(x, {4, 0}, {12, 8});
       },
       [](Value a, Value b) { return a - b; }},
      {"transpose",
       [](Value x) {
         return transpose(x, {1, 0});
       },
       [](Value a, Value b) {
         return matmul(a, transpose(b, {1, 0}));
       }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {64, 32}});
    std::vector<Value> ends;
    for (unsigned m : {10, 20}) ends.push_back(c.end(dense(maximum(dense(x, 96, m), 0), 8, m + 5)));
    graph.output("y", c.join(ends[0], ends[1]));
    EXPECT_NE(names_of(graph, 2), names_of(graph, 1));
    expect_same(graph);
  }
}

// A duelling network: its kernels read through the broadcast, to what the branch makes.
TEST(cpu_branches, a_branch_may_end_with_what_others_look_through) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {1, 2048}});
  const Value advantage = dense(maximum(dense(x, 256, 1), 0), 6, 2), value = dense(maximum(dense(x, 256, 3), 0), 1, 4);
  const Value wide = broadcast_to(reshape(value, {1}), {1, 6});
  graph.output("again", exponential(wide));
  graph.output("y", wide + (advantage - mean(advantage, {1}, true)));
  const auto names = names_of(graph, 2);
  EXPECT_NE(std::find(names.begin(), names.end(), "branches"), names.end());
  expect_same(graph);
}

TEST(cpu_branches, one_after_another_where_there_is_nothing_to_gain) {
  const auto has_branches = [](const Graph& graph, int threads) {
    const auto names = names_of(graph, threads);
    return std::find(names.begin(), names.end(), "branches") != names.end();
  };
  Graph small;
  const Value x = small.input("x", {DType::f32, {1, 4}});
  small.output("y", dense(x, 4, 1) + dense(x, 4, 2));
  EXPECT_FALSE(has_branches(small, 2));
  Graph chain;
  Value h = chain.input("x", {DType::f32, {64, 256}});
  for (unsigned i = 0; i < 6; ++i) h = maximum(dense(h, 256, i), 0);
  chain.output("y", h);
  EXPECT_FALSE(has_branches(chain, 2));
  Graph ensemble;
  ensemble.output("y", mean(stack(members(ensemble.input("x", {DType::f32, {64, 32}}), 5), 0), {0}));
  EXPECT_FALSE(has_branches(ensemble, 1));
  // One long and many short ones: the long one alone takes as long as everything with all threads.
  Graph uneven;
  const Value y = uneven.input("x", {DType::f32, {256, 256}});
  Value deep = y;
  for (unsigned i = 0; i < 6; ++i) deep = maximum(dense(deep, 256, i), 0);
  uneven.output("y", dense(deep, 8, 9) + dense(y, 8, 10));
  EXPECT_FALSE(has_branches(uneven, 2));
}

}  // namespace
}  // namespace tutti::cpu
