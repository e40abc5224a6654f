// run() allocates nothing.
#include <gtest/gtest.h>

#include "tests/device/count_allocations.h"
#include "tests/device/run_graph.h"
#include "tests/graph/random_graph.h"

namespace tutti {
namespace {

TEST(reference, run_allocates_nothing) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {1, 8, 8, 3}});
  Value kernel = graph.parameter(Graph::Role::weight, "k", {DType::f32, {3, 3, 3, 4}}, RandomGraph::ramp({3, 3, 3, 4}));
  Value state = graph.parameter(Graph::Role::state, "s", {DType::f32, {4}}, RandomGraph::ramp({4}));
  Value y = maximum(convolution(x, kernel, {{1, 1}, {1, 1}, {1, 1}}), 0.0);
  y = reduce_window(pad(y, 0, {0, 1, 1, 0}, {0, 0, 0, 0}), "max", {{1, 2, 2, 1}, {1, 2, 2, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}});
  Value features = reduce(transpose(y, {0, 3, 1, 2}), "add", {2, 3});
  auto steps = scan({features}, {}, {state}, 4, false, [](Graph&, auto carries, auto, auto whole) {
    return ScanStep{{tanh(carries[0] * broadcast_to(whole[0], {1, 4}))}, {carries[0]}};
  });
  graph.output("y", dot_general(steps.carries[0], reshape(concatenate({features, features}, 0), {2, 4}), {{}, {}, {1}, {1}}));
  graph.update(state, slice(reshape(steps.stacked[0], {16}), {0}, {4}));
  Runner runner(graph, "reference");
  runner({RandomGraph::ramp({1, 8, 8, 3})});
  int64_t before = count_allocations();
  runner.run();
  EXPECT_EQ(count_allocations(), before);
}

}  // namespace
}  // namespace tutti
