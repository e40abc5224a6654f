#include "tutti/device/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/graph/random_graph.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

// When the bytes of a value are needed, found without the plan: from the node that makes them to the last that reads them, through a view
// or not.
struct Life {
  int64_t offset, bytes;
  size_t first, last;
};

std::vector<Life> lives(const Graph& graph, const Plan& plan) {
  std::vector<Life> out;
  for (size_t v = 0; v < graph.value_count(); ++v) {
    if (plan.offset[v] == Plan::outside || plan.root[v] != static_cast<ValueId>(v)) continue;
    auto id = static_cast<ValueId>(v);
    Life life{plan.offset[v], graph.type(id).bytes(), static_cast<size_t>(graph.producer(id)), static_cast<size_t>(graph.producer(id))};
    auto shares = [&](ValueId other) { return plan.root[static_cast<size_t>(other)] == plan.root[v]; };
    for (size_t n = 0; n < graph.nodes().size(); ++n)
      if (const Node& node = graph.nodes()[n]; !is_view(graph, node) && std::any_of(node.operands.begin(), node.operands.end(), shares))
        life.last = std::max(life.last, n);
    for (const auto& output : graph.outputs())
      if (shares(output.value)) life.last = graph.nodes().size();
    for (const auto& update : graph.updates())
      if (shares(update.next)) life.last = graph.nodes().size();
    out.push_back(life);
  }
  return out;
}

TEST(plan, no_two_live_values_overlap) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Graph graph = RandomGraph(seed).make(10 + seed % 60);
    std::vector<int64_t> workspace(graph.nodes().size());
    std::mt19937 random(seed);
    for (auto& bytes : workspace) bytes = static_cast<int64_t>(random() % 500);
    auto steps = one_step_a_node(graph);
    for (Step& step : steps) {
      step.kernel.workspace = workspace[static_cast<size_t>(step.nodes[0])];
      step.threads = random() % 3 == 0 ? 2 : 1;
    }
    Plan plan = plan_memory(graph, steps);
    auto all = lives(graph, plan);
    for (size_t s = 0; s < steps.size(); ++s) {
      auto n = static_cast<size_t>(steps[s].nodes[0]);
      all.push_back({plan.workspace[s], workspace[n], n, n});
    }
    int64_t sum = 0, end = 0;
    for (const auto& a : all) {
      EXPECT_EQ(a.offset % Plan::alignment, 0);
      EXPECT_LE(a.offset + a.bytes, plan.arena_bytes);
      end = std::max(end, a.offset + a.bytes);
      sum += (a.bytes + Plan::alignment - 1) / Plan::alignment * Plan::alignment;
    }
    EXPECT_LE(plan.arena_bytes - end, Plan::alignment);
    EXPECT_LE(plan.arena_bytes, sum);
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const Life &a = all[i], &b = all[j];
        bool together = a.first <= b.last && b.first <= a.last;
        bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(together && overlap) << "seed " << seed << "\n" << print_graph(graph);
      }
  }
}

TEST(plan, a_chain_needs_two_places) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {1000}});
  for (int i = 0; i < 50; ++i) x = tanh(x);
  graph.output("y", x);
  EXPECT_LE(plan_memory(graph, one_step_a_node(graph)).arena_bytes, 2 * 4032);
}

TEST(plan, threads_find_their_memory_where_it_was_in_the_step_before) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {1000}});
  for (int i = 0; i < 4; ++i) x = tanh(x);
  graph.output("y", x);
  auto steps = one_step_a_node(graph);
  for (size_t s = 0; s < steps.size(); ++s) {
    steps[s].threads = s == 2 ? 1 : 2;
    steps[s].kernel.workspace = static_cast<int64_t>(1000 * (s + 1));
  }
  const Plan plan = plan_memory(graph, steps);
  EXPECT_EQ(plan.workspace[0], plan.workspace[1]);
  EXPECT_EQ(plan.workspace[0], plan.workspace[3]);
  EXPECT_NE(plan.workspace[0], plan.workspace[2]);
  for (size_t v = 0; v < graph.value_count(); ++v)
    if (plan.offset[v] != Plan::outside) {
      EXPECT_GE(plan.offset[v], plan.workspace[0] + 4000);
    }

  steps[3].kernel.workspace = int64_t{5} << 20;  // much memory is not set aside for one step
  const Plan other = plan_memory(graph, steps);
  EXPECT_EQ(other.workspace[0], other.workspace[1]);
  EXPECT_LE(other.arena_bytes, (int64_t{5} << 20) + 2048 + 2 * 4032);
}

TEST(plan, views_and_leaves_take_no_place) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 3}});
  Value y = broadcast_in_dim(bitcast_convert(reshape(x, {6}), DType::i32), {1, 6, 1}, {1});
  graph.output("y", y);
  graph.output("c", graph.constant(RandomGraph::ramp({100})));
  Plan plan = plan_memory(graph, one_step_a_node(graph));
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.root[static_cast<size_t>(y.id())], x.id());
}

TEST(plan, a_broadcast_that_transposes_is_no_view) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 3}});
  graph.output("y", broadcast_in_dim(x, {3, 2}, {1, 0}));
  EXPECT_GT(plan_memory(graph, one_step_a_node(graph)).arena_bytes, 0);
}

TEST(plan, refuses_what_no_machine_has) {
  Graph graph;
  Value x = graph.iota({DType::f64, {int64_t{1} << 48}}, 0);
  for (int i = 0; i < 40; ++i) graph.output("y", tanh(x));
  EXPECT_THROW(plan_memory(graph, one_step_a_node(graph)), OutOfMemory);
}

}  // namespace
}  // namespace tutti
