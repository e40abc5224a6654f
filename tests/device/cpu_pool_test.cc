// Pooling against the reference device.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/device/run_graph.h"
#include "tutti/device/cpu/loops/pool.h"
#include "tutti/device/cpu/loops/pool_gradient.h"
#include "tutti/graph/build.h"

namespace tutti::cpu {
namespace {

void expect_as_reference(const Shape& shape, const Window& window) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> real(-2, 2);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& x : values) x = real(random);
  values[values.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  for (const char* kind : {"max", "add", "min", "multiply"}) {
    Graph graph;
    graph.output("y", reduce_window(graph.input("x", {DType::f32, shape}), kind, window));
    const Node& node = graph.nodes().back();
    ASSERT_TRUE(can_pool(graph, node));
    auto want = floats(Runner(graph, "reference")({f32(shape, values)})[0]);
    for (int threads : {1, 2}) {
      auto kernel = make_pool(graph, node, threads);
      std::vector<float> got(want.size());
      const auto* from = reinterpret_cast<const std::byte*>(values.data());
      auto* to = reinterpret_cast<std::byte*>(got.data());
      kernel.run({&from, &to, nullptr});
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_TRUE(want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i])) ||
                    std::fabs(want[i] - got[i]) < 5e-6f * std::max(1.0f, std::fabs(want[i])))
            << got[i] << " at " << i << ", expected " << want[i] << "\n"
            << print_graph(graph);
    }
  }
}

TEST(cpu_pool, windows_of_one_to_three_axes) {
  for (int64_t channels : {1, 3, 8, 9, 40, 64, 67}) {
    expect_as_reference({2, 13, channels}, {{1, 3, 1}, {1, 2, 1}, {0, 0, 0}, {0, 0, 0}});
    expect_as_reference({1, 14, 9, channels}, {{1, 2, 2, 1}, {1, 2, 2, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}});
    expect_as_reference({2, 15, 8, channels}, {{1, 3, 3, 1}, {1, 2, 2, 1}, {0, 1, 1, 0}, {0, 1, 1, 0}});
    expect_as_reference({2, 5, 6, 7, channels}, {{1, 2, 3, 2, 1}, {1, 1, 2, 2, 1}, {0, 1, 0, 1, 0}, {0, 0, 1, 1, 0}});
  }
}

TEST(cpu_pool, zeros_between_elements_are_passed_over) {
  expect_as_reference({2, 4, 5, 9}, {{1, 2, 2, 1}, {1, 1, 1, 1}, {0, 1, 1, 0}, {0, 1, 1, 0}, {1, 2, 2, 1}});  // as for average pooling
  expect_as_reference({1, 4, 5, 3}, {{1, 3, 4, 1}, {1, 2, 1, 1}, {0, 2, 7, 0}, {0, 2, -1, 0}, {1, 2, 3, 1}});
  expect_as_reference({1, 6, 8}, {{1, 1, 1}, {1, 1, 1}, {0, -1, 0}, {0, 4, 0}, {1, 4, 1}});
}

TEST(cpu_pool, dilated_windows_and_wide_padding) {
  expect_as_reference({1, 20, 11, 5}, {{1, 3, 2, 1}, {1, 1, 3, 1}, {0, 2, 1, 0}, {0, 2, 4, 0}, {}, {1, 2, 3, 1}});
  expect_as_reference({1, 4, 8}, {{1, 2, 1}, {1, 1, 1}, {0, 5, 0}, {0, 6, 0}});                 // whole windows in the padding
  expect_as_reference({1, 6, 8}, {{1, 2, 1}, {1, 1, 1}, {0, -1, 0}, {0, -2, 0}});               // padding that cuts off
  expect_as_reference({2, 6, 4, 8}, {{1, 2, 1, 1}, {1, 2, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}});  // rows of 4 * 8 channels
}

// Values of few kinds, so that there are equals, and a NaN.
void expect_gradient_as_reference(const Shape& shape, const Window& window) {
  for (const char* kind : {"max", "min"}) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, shape}), pooled = reduce_window(x, kind, window);
    Value g = graph.input("g", pooled.type());
    graph.output("y", graph.add(Op::select_and_scatter, {x, g}, graph.maker(pooled.id()).attributes)[0]);
    const Node& node = graph.nodes().back();
    ASSERT_TRUE(can_pool_gradient(graph, node));
    std::mt19937 random(5);
    std::vector<float> values(static_cast<size_t>(shape.elements())), gradients(static_cast<size_t>(pooled.shape().elements()));
    for (float& value : values) value = static_cast<float>(random() % 7);
    for (float& value : gradients) value = static_cast<float>(random() % 9) - 4;
    values[values.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    const auto want = floats(Runner(graph, "reference")({f32(shape, values), f32(pooled.shape(), gradients)})[0]);
    for (int threads : {1, 2}) {
      auto kernel = make_pool_gradient(graph, node, threads);
      std::vector<float> got(want.size(), 77.0f);
      const std::byte* from[] = {reinterpret_cast<const std::byte*>(values.data()), reinterpret_cast<const std::byte*>(gradients.data())};
      auto* to = reinterpret_cast<std::byte*>(got.data());
      kernel.run({from, &to, nullptr});
      EXPECT_EQ(got, want) << print_graph(graph);
    }
  }
}

TEST(cpu_pool, gradients_go_to_the_first_of_the_best) {
  for (int64_t channels : {1, 3, 8, 40, 67}) {
    expect_gradient_as_reference({2, 13, channels}, {{1, 3, 1}, {1, 2, 1}, {0, 0, 0}, {0, 0, 0}});
    expect_gradient_as_reference({3, 14, 9, channels}, {{1, 2, 2, 1}, {1, 2, 2, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}});
    expect_gradient_as_reference({2, 15, 8, channels}, {{1, 3, 3, 1}, {1, 2, 2, 1}, {0, 1, 1, 0}, {0, 1, 1, 0}});
    expect_gradient_as_reference({2, 5, 6, 7, channels}, {{1, 2, 3, 2, 1}, {1, 1, 2, 2, 1}, {0, 1, 0, 1, 0}, {0, 0, 1, 1, 0}});
  }
  expect_gradient_as_reference({1, 20, 11, 5}, {{1, 3, 2, 1}, {1, 1, 3, 1}, {0, 2, 1, 0}, {0, 2, 4, 0}, {}, {1, 2, 3, 1}});
  expect_gradient_as_reference({1, 4, 8}, {{1, 2, 1}, {1, 1, 1}, {0, 5, 0}, {0, 6, 0}});  // whole windows in the padding
}

TEST(cpu_pool, leaves_other_windows_to_the_reference) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 8, 8, 4}}), y = graph.input("y", {DType::f16, {2, 8, 8, 4}});
  Window last{{1, 1, 1, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}},
      spread{{1, 2, 2, 1}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 2, 1, 1}, {1, 2, 1, 1}};
  Window plain{{1, 2, 2, 1}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}};
  for (Value value : {reduce_window(x, "max", last), reduce_window(x, "max", spread), reduce_window(y, "max", plain)})
    EXPECT_FALSE(can_pool(graph, graph.nodes()[static_cast<size_t>(graph.producer(value.id()))]));
}

}  // namespace
}  // namespace tutti::cpu
