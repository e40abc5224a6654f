#include "tutti/transform/stack.h"

#include <gtest/gtest.h>

#include "tests/transform/before_after.h"
#include "tests/transform/random_net.h"
#include "tutti/graph/compose.h"
#include "tutti/transform/append.h"
#include "tutti/transform/rebuild.h"

namespace tutti {
namespace {

// The same graph with other numbers in its constants of several elements.
Graph with_other_weights(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  Rebuild rebuild(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::constant || node.literal.elements() < 2 || node.literal.dtype() != DType::f32) {
      rebuild.copy(node);
      continue;
    }
    Tensor other(node.literal.type());
    for (float& x : other.as<float>()) x = static_cast<float>(static_cast<int>(random() % 17) - 8) / 16;
    rebuild.map(node.results[0], rebuild.graph().constant(std::move(other)));
  }
  return rebuild.finish();
}

struct Members {
  Graph graph;
  std::vector<Region> regions;
};

// Members side by side on the same inputs, all outputs kept.
Members side_by_side(const std::vector<Graph>& members) {
  Members out;
  std::vector<Value> inputs;
  for (const Node* node : members[0].parameters(Graph::Role::input))
    inputs.push_back(out.graph.input(node->attributes.text("name"), members[0].type(node->results[0])));
  for (size_t m = 0; m < members.size(); ++m) {
    const size_t first = out.graph.nodes().size();
    const auto results = append(out.graph, members[m], inputs);
    out.regions.push_back({first, out.graph.nodes().size()});
    for (size_t i = 0; i < results.size(); ++i) out.graph.output(std::to_string(m) + "." + std::to_string(i), results[i]);
  }
  return out;
}

std::vector<Region> pick(const std::vector<Region>& regions, const std::vector<size_t>& indices) {
  std::vector<Region> out;
  for (size_t i : indices) out.push_back(regions[i]);
  return out;
}

TEST(stack, random_models_give_the_same_together) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::vector<Graph> members;
    members.push_back(RandomNet(seed).make(10));
    for (unsigned m = 1; m < 4; ++m) members.push_back(with_other_weights(members[0], 100 * seed + m));
    members.push_back(RandomNet(seed + 1000).make(10));  // of another structure
    members.push_back(with_other_weights(members.back(), seed));
    const Members all = side_by_side(members);
    const auto groups = group_alike(all.graph, all.regions);
    ASSERT_GE(groups.size(), 1u) << seed;
    ASSERT_EQ(groups[0], (std::vector<size_t>{0, 1, 2, 3})) << seed;
    for (Together how : {Together::stacked, Together::looped}) {
      std::vector<RegionGroup> chosen;
      for (const auto& group : groups) chosen.push_back({pick(all.regions, group), how});
      const Graph together = stack(all.graph, chosen);
      verify(together);
      EXPECT_LT(together.nodes().size(), all.graph.nodes().size()) << seed;
      expect_same_results(all.graph, together, 1e-5, false);
    }
  }
}

TEST(stack, what_is_equal_in_all_members_is_done_once) {
  const auto member = [](float last) {
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {2, 2}});
    const Value h = tanh(x * constant<float>(graph, {2, 2}, {1, 2, 3, 4}));
    graph.output("y", h * constant<float>(graph, {2, 2}, {last, 1, 1, 1}));
    return graph;
  };
  std::vector<Graph> members;
  for (float last : {1.f, 2.f}) members.push_back(member(last));
  const Members all = side_by_side(members);
  const RegionGroup groups[] = {{all.regions, Together::stacked}};
  const Graph together = stack(all.graph, groups);
  for (const Node& node : together.nodes()) {
    if (node.op != Op::tanh) continue;
    EXPECT_EQ(together.type(node.results[0]).shape, (Shape{2, 2}));
  }
  expect_same_results(all.graph, together, 0, false);
}

TEST(stack, members_that_wait_for_each_other_are_not_grouped) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2}});
  std::vector<Region> regions;
  Value h = x;
  for (int i = 0; i < 2; ++i) {
    const size_t first = graph.nodes().size();
    h = tanh(h);
    regions.push_back({first, graph.nodes().size()});
    h = exponential(h);  // between the two
  }
  graph.output("y", h);
  EXPECT_TRUE(group_alike(graph, regions).empty());
}

TEST(stack, groups_that_would_wait_for_each_other_are_not_both_made) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2}});
  std::vector<Region> regions;
  const auto one = [&](Op op, Value value) {
    const size_t first = graph.nodes().size();
    const Value out = unary(op, value);
    regions.push_back({first, graph.nodes().size()});
    return out;
  };
  graph.output("a", one(Op::sine, one(Op::tanh, x)));
  graph.output("b", one(Op::tanh, one(Op::sine, x)));
  const auto groups = group_alike(graph, regions);
  ASSERT_EQ(groups.size(), 1u);
  const RegionGroup chosen[] = {{pick(regions, groups[0]), Together::stacked}};
  expect_same_results(graph, stack(graph, chosen), 0, false);
}

TEST(stack, weights_that_lie_side_by_side_are_not_copied) {
  const Tensor both = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor stacked = Tensor::stacked(std::vector{both.part(0), both.part(1)});
  EXPECT_EQ(stacked.bytes().data(), both.bytes().data());
  EXPECT_EQ(floats(stacked), floats(both));
  const Tensor swapped = Tensor::stacked(std::vector{both.part(1), both.part(0)});
  EXPECT_EQ(floats(swapped), (std::vector<float>{4, 5, 6, 1, 2, 3}));
}

}  // namespace
}  // namespace tutti
