// States that are written over by the step that reads them last, or kept aside until the end: after some runs they are those of the
// reference device, whatever else reads them and in which order.
#include <gtest/gtest.h>

#include <random>

#include "tests/device/random_data.h"
#include "tests/device/run_graph.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

// Elementwise updates of a few states by each other, products and sums between them, and outputs that are old or new values.
Graph made_of_states(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](const std::vector<Value>& values) { return values[random() % values.size()]; };
  Graph graph;
  const Type type{DType::f32, {6, 6}};
  std::vector<Value> states, values{graph.input("x", type)};
  for (int i = 0; i < 4; ++i) {
    states.push_back(
        graph.parameter(Graph::Role::state, "s" + std::to_string(i), type, random_tensor(type, seed * 10 + static_cast<unsigned>(i))));
    values.push_back(states.back());
  }
  for (int i = 0; i < 10; ++i) {
    const Value a = one_of(values), b = one_of(values);
    switch (random() % 6) {
      case 0: values.push_back(tanh(dot_general(a, b, {{}, {}, {1}, {0}}))); break;
      case 1: values.push_back(tanh(transpose(a, {1, 0}) + b)); break;
      case 2: values.push_back(tanh(broadcast_to(slice(a, {0, 0}, {1, 6}, {1, 1}), a.shape()) - b)); break;
      case 3: values.push_back(a + (b - a) * 0.25); break;
      default: values.push_back(tanh(a * 0.5 - b)); break;
    }
  }
  for (const Value& state : states)
    if (random() % 4 != 0) graph.update(state, one_of(values));
  graph.output("y", one_of(values));
  graph.output("z", one_of(values) * 2.0);
  return graph;
}

TEST(states, are_those_of_the_reference_device_after_every_run) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const Graph graph = made_of_states(seed);
    Runner ours(graph, "cpu"), theirs(graph, "reference");
    for (unsigned run = 0; run < 4; ++run) {
      const std::vector<Tensor> inputs{random_tensor({DType::f32, {6, 6}}, seed + run)};
      const auto got = ours(inputs), want = theirs(inputs);
      for (size_t i = 0; i < want.size(); ++i) {
        const auto a = floats(got[i]), b = floats(want[i]);
        for (size_t k = 0; k < a.size(); ++k)
          ASSERT_NEAR(a[k], b[k], 1e-4) << "seed " << seed << " run " << run << " output " << i << "\n" << print_graph(graph);
      }
    }
  }
}

}  // namespace
}  // namespace tutti
