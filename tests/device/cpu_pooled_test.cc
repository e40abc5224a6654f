// A convolution with the pooling behind it: bit for bit what they give one after the other.
#include <gtest/gtest.h>

#include "tests/device/random_data.h"
#include "tests/device/run_graph.h"
#include "tutti/device/cpu/candidate.h"
#include "tutti/device/sequence.h"
#include "tutti/graph/compose.h"

namespace tutti::cpu {
namespace {

struct Layers {
  int64_t batch = 1, height, width, channels, filters;
  Ints kernel = {3, 3}, strides = {1, 1}, low = {0, 0}, high = {0, 0};
  Ints window = {2, 2}, steps = {2, 2};
  int64_t groups = 1;
  std::string kind = "max";
};

// With the result of the convolution as an output, the pooling is by itself.
Graph graph_of(const Layers& layers, bool shows_both) {
  Graph graph;
  const auto weights = [&](const Shape& shape, unsigned seed) { return graph.constant(f32(shape, normal_floats(shape.elements(), seed))); };
  Value x = graph.input("x", {DType::f32, {layers.batch, layers.height, layers.width, layers.channels}});
  Value kernel = weights({layers.kernel[0], layers.kernel[1], layers.channels / layers.groups, layers.filters}, 2);
  Value y = convolution(x, kernel, {.strides = layers.strides, .low = layers.low, .high = layers.high, .groups = layers.groups});
  y = maximum(y + broadcast_in_dim(weights({layers.filters}, 3), y.shape(), {3}), 0.0);
  const Ints &window = layers.window, &steps = layers.steps, none(4, 0);
  graph.output("pooled", reduce_window(y, layers.kind, {{1, window[0], window[1], 1}, {1, steps[0], steps[1], 1}, none, none}));
  if (shows_both) graph.output("convolved", y);
  return graph;
}

bool is_pooled(const Layers& layers, int threads = 1) {
  const Graph graph = graph_of(layers, false);
  return select_steps(graph, {.threads = threads}).front().name == "convolution+bias+relu+pool";
}

void check(const Layers& layers) {
  const auto x = normal_floats(layers.batch * layers.height * layers.width * layers.channels, 1);
  const Graph together = graph_of(layers, false), apart = graph_of(layers, true);
  const Tensor image = f32({layers.batch, layers.height, layers.width, layers.channels}, x);
  EXPECT_TRUE(is_pooled(layers)) << print_graph(together);
  const auto want = floats(Runner(apart, "cpu", 1)({image})[0]);
  for (int threads : {1, 2, 3}) EXPECT_EQ(floats(Runner(together, "cpu", threads)({image})[0]), want) << print_graph(together) << threads;
}

TEST(cpu_pooled, images_of_one_to_many_channels) {
  check({.height = 28, .width = 28, .channels = 1, .filters = 32});
  check({.batch = 3, .height = 13, .width = 13, .channels = 32, .filters = 64});
  check({.batch = 5, .height = 17, .width = 9, .channels = 3, .filters = 20, .kernel = {5, 3}});
  check({.batch = 2, .height = 40, .width = 41, .channels = 48, .filters = 48, .low = {1, 1}, .high = {1, 1}});
  check({.batch = 2, .height = 20, .width = 20, .channels = 6, .filters = 9, .groups = 3});
}

TEST(cpu_pooled, what_no_window_reads_is_not_made) {
  for (int64_t extra = 0; extra < 3; ++extra) {
    check({.batch = 2, .height = 9 + extra, .width = 10 + extra, .channels = 5, .filters = 18, .window = {3, 3}, .steps = {3, 3}});
    check({.batch = 2, .height = 12 + extra, .width = 11 + extra, .channels = 8, .filters = 16, .kernel = {1, 1}});
    check({.batch = 2, .height = 12, .width = 11 + extra, .channels = 32, .filters = 32, .low = {1, 1}, .high = {1, 1}});
    check({.batch = 2,
           .height = 19 + extra,
           .width = 18 + extra,
           .channels = 4,
           .filters = 16,
           .strides = {2, 2},
           .low = {1, 0},
           .high = {1, 1}});
  }
}

TEST(cpu_pooled, windows_and_their_steps) {
  check({.batch = 2, .height = 18, .width = 30, .channels = 4, .filters = 16, .window = {2, 3}, .steps = {2, 2}});
  check({.batch = 2, .height = 18, .width = 30, .channels = 4, .filters = 16, .window = {2, 2}, .steps = {2, 5}});
  check({.batch = 2, .height = 18, .width = 30, .channels = 4, .filters = 16, .window = {1, 2}, .steps = {1, 2}});
  check({.batch = 2, .height = 18, .width = 30, .channels = 32, .filters = 32, .window = {4, 3}, .steps = {4, 3}, .kind = "add"});
}

TEST(cpu_pooled, others_stay_two_steps) {
  const Layers plain{.batch = 2, .height = 18, .width = 18, .channels = 32, .filters = 32};
  Layers overlapping = plain, odd = plain, column = plain, few = plain;
  overlapping.window = {3, 3};
  EXPECT_FALSE(is_pooled(overlapping));
  odd.window = odd.steps = {3, 3};  // Winograd's tiles are two rows
  EXPECT_FALSE(is_pooled(odd));
  column.window = column.steps = {2, 1};
  EXPECT_FALSE(is_pooled(column));
  few.batch = 1, few.height = 8, few.channels = few.filters = 256;  // three lines for two threads
  EXPECT_TRUE(is_pooled(few));
  EXPECT_FALSE(is_pooled(few, 2));
}

}  // namespace
}  // namespace tutti::cpu
