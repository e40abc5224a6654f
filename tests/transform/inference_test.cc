// All passes together on random graphs: results stay, and a second run finds nothing to do.
#include <algorithm>

#include "tests/graph/random_graph.h"
#include "tests/transform/before_after.h"
#include "tests/transform/random_net.h"

namespace tutti {
namespace {

const std::vector<std::string> inexact = {"fold_scales", "sum_products"};

Graph run_all(const Graph& graph, std::vector<std::string> skip) {
  FoldMemo memo;
  return run_passes(graph, inference_passes(evaluate_on_reference, memo), {.skip = std::move(skip), .verify = true, .rounds = 10});
}

TEST(InferencePasses, can_be_read_aloud) {
  FoldMemo memo;
  std::string names;
  for (const Pass& pass : inference_passes(evaluate_on_reference, memo)) names += std::string(pass.name) + " ";
  EXPECT_EQ(
      names,
      "remove_dead simplify share_common hoist_from_scans move_weights_into_scans fold_scales sum_products fold_padding fold_constants "
      "remove_dead ");
}

TEST(InferencePasses, keep_every_bit_of_random_graphs) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Graph graph = RandomGraph(seed).make(10 + seed % 50), after = run_all(graph, inexact);
    expect_same_results(graph, after, 0, false);
    expect_same_results(graph, after, 0, true);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// A max-pool may change the sign of a zero, which the division of a random net could make an infinity of: it is tested for itself.
TEST(InferencePasses, keep_every_bit_of_random_nets_when_none_rounds) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Graph graph = RandomNet(seed).make(4 + static_cast<int>(seed % 12)), after = run_all(graph, {"fold_scales", "fold_padding"});
    expect_same_results(graph, after, 0, false);
    expect_same_results(graph, after, 0, true);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(InferencePasses, stay_close_on_random_nets) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Graph graph = RandomNet(seed).make(4 + static_cast<int>(seed % 12)), after = run_all(graph, {});
    expect_same_results(graph, after, 1e-4, false);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(InferencePasses, find_nothing_more_the_second_time) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    Graph net = run_all(RandomNet(seed).make(4 + static_cast<int>(seed % 12)), {}),
          graph = run_all(RandomGraph(seed).make(10 + seed % 50), {});
    ASSERT_EQ(print_graph(run_all(net, {})), print_graph(net)) << "net " << seed;
    ASSERT_EQ(print_graph(run_all(graph, {})), print_graph(graph)) << "graph " << seed;
  }
}

TEST(InferencePasses, share_what_they_fold_between_batch_sizes) {
  FoldMemo memo;
  std::vector<const std::byte*> first;
  Tensor kernel(DType::f32, {64, 64}), scale(DType::f32, {64});
  std::fill_n(kernel.as<float>().begin(), 64 * 64, 0.5f);
  std::fill_n(scale.as<float>().begin(), 64, 3.f);
  auto literals = [&](int64_t batch) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {batch, 64}});
    Value k = graph.parameter(Graph::Role::weight, "k", kernel.type(), kernel),
          s = graph.parameter(Graph::Role::weight, "s", scale.type(), scale);
    graph.output("y", dot_general(x, k, {{}, {}, {1}, {0}}) * rsqrt(s + 0.5) + s);
    std::vector<const std::byte*> out;
    Graph after = run_passes(graph, inference_passes(evaluate_on_reference, memo), {.verify = true});
    for (const Node& node : after.nodes())
      if (!node.literal.empty()) out.push_back(node.literal.bytes().data());
    return out;
  };
  EXPECT_EQ(literals(1).size(), 2u);
  EXPECT_EQ(literals(1), literals(32));
}

}  // namespace
}  // namespace tutti
