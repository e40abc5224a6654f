// Which graphs keep the samples of a batch apart.
#include "tutti/graph/sample_axes.h"

#include <gtest/gtest.h>

#include "tutti/graph/compose.h"

namespace tutti {
namespace {

constexpr int64_t batch = 3;

// Whether what `f` makes of x [3, 4, 5] keeps samples apart.
bool apart(const std::function<Value(Value)>& f) {
  Graph graph;
  graph.output("y", f(graph.input("x", {DType::f32, {batch, 4, 5}})));
  return samples_are_independent(graph, batch);
}

Value weight(Value x, Shape shape) { return x.graph().parameter(Graph::Role::weight, "w", {DType::f32, shape}, Tensor(DType::f32, shape)); }

TEST(sample_axes, elementwise_work_keeps_samples_apart) {
  EXPECT_TRUE(apart([](Value x) { return tanh(x) * 2.0 + x; }));
  EXPECT_TRUE(apart([](Value x) { return x + weight(x, {5}); }));
  EXPECT_FALSE(apart([](Value x) { return x + transpose(reshape(x, {4, batch, 5}), {1, 0, 2}); }));
}

TEST(sample_axes, reductions_may_not_touch_the_samples) {
  EXPECT_TRUE(apart([](Value x) { return x - broadcast_in_dim(reduce(x, "max", {2}), {batch, 4, 5}, {0, 1}); }));
  EXPECT_FALSE(apart([](Value x) { return x - broadcast_in_dim(reduce(x, "add", {0}), {batch, 4, 5}, {1, 2}); }));
}

TEST(sample_axes, reshapes_and_transposes_are_followed) {
  EXPECT_TRUE(apart([](Value x) { return reshape(x, {batch, 20}); }));
  EXPECT_TRUE(apart([](Value x) { return reshape(tanh(reshape(x, {batch * 4, 5})), {batch, 4, 5}); }));
  EXPECT_TRUE(apart([](Value x) { return transpose(tanh(transpose(x, {1, 0, 2})), {1, 0, 2}); }));
  EXPECT_FALSE(apart([](Value x) { return reshape(x, {batch * 4, 5}); }));                         // more rows than samples
  EXPECT_FALSE(apart([](Value x) { return transpose(x, {1, 0, 2}); }));                            // the samples are not the rows
  EXPECT_FALSE(apart([](Value x) { return reshape(reshape(x, {5, 4, batch}), {batch, 4, 5}); }));  // what was a sample is spread
}

TEST(sample_axes, products) {
  EXPECT_TRUE(apart([](Value x) { return dot_general(x, weight(x, {5, 7}), {{}, {}, {2}, {0}}); }));
  EXPECT_TRUE(apart([](Value x) { return dot_general(x, x, {{0}, {0}, {2}, {2}}); }));  // attention
  EXPECT_TRUE(apart([](Value x) { return transpose(dot_general(weight(x, {5, 7}), x, {{}, {}, {0}, {2}}), {1, 0, 2}); }));
  EXPECT_FALSE(apart([](Value x) { return dot_general(x, weight(x, {batch, 7}), {{}, {}, {0}, {0}}); }));
  EXPECT_FALSE(apart([](Value x) { return dot_general(x, x, {{1}, {1}, {2}, {2}}); }));  // samples against samples
}

TEST(sample_axes, movements_along_the_samples_mix_them) {
  EXPECT_TRUE(apart([](Value x) { return slice(x, {0, 1, 0}, {batch, 3, 5}); }));
  EXPECT_FALSE(apart([](Value x) { return concatenate({slice(x, {1, 0, 0}, {batch, 4, 5}), slice(x, {0, 0, 0}, {1, 4, 5})}, 0); }));
  EXPECT_TRUE(apart([](Value x) { return concatenate({x, x * 2.0}, 1); }));
  EXPECT_TRUE(apart([](Value x) { return reverse(x, {1}); }));
  EXPECT_FALSE(apart([](Value x) { return reverse(x, {0}); }));
  EXPECT_TRUE(apart([](Value x) { return pad(x, 0, {0, 1, 0}, {0, 0, 2}); }));
  EXPECT_FALSE(apart([](Value x) { return slice(pad(x, 0, {1, 0, 0}, {0, 0, 0}), {0, 0, 0}, {batch, 4, 5}); }));
}

TEST(sample_axes, windows_and_convolutions) {
  EXPECT_TRUE(apart([](Value x) { return convolution(x, weight(x, {3, 5, 2}), {{1}, {0}, {0}}); }));
  auto pooled = [](int64_t rows) {
    return [=](Value x) { return reduce_window(x, "max", {{rows, 2, 1}, {1, 2, 1}, {rows - 1, 0, 0}, {0, 0, 0}}); };
  };
  EXPECT_TRUE(apart(pooled(1)));
  EXPECT_FALSE(apart(pooled(2)));
}

TEST(sample_axes, recurrent_loops_over_time) {
  auto recurrent = [](bool mixes) {
    return [=](Value x) {
      Value state = broadcast_to(x.graph().constant(Tensor::scalar(0.0f)), {batch, 5});
      auto steps = scan({state}, {transpose(x, {1, 0, 2})}, {}, 4, false, [&](Graph&, auto carries, auto slices, auto) {
        Value next = tanh(carries[0] + slices[0]);
        if (mixes) next = next + broadcast_in_dim(reduce(next, "add", {0}), {batch, 5}, {1});
        return ScanStep{{next}, {next}};
      });
      return concatenate({reshape(steps.carries[0], {batch, 1, 5}), transpose(steps.stacked[0], {1, 0, 2})}, 1);
    };
  };
  EXPECT_TRUE(apart(recurrent(false)));
  EXPECT_FALSE(apart(recurrent(true)));
  // Samples one after another, as time.
  EXPECT_FALSE(apart([](Value x) {
    auto steps =
        scan({reshape(slice(x, {0, 0, 0}, {1, 4, 5}), {4, 5})}, {x}, {}, batch, false, [](Graph&, auto carries, auto slices, auto) {
          return ScanStep{{carries[0] + slices[0]}, {carries[0]}};
        });
    return steps.stacked[0];
  }));
}

TEST(sample_axes, one_sample_says_nothing) {
  Graph graph;
  graph.output("y", tanh(graph.input("x", {DType::f32, {1, 4}})));
  EXPECT_FALSE(samples_are_independent(graph, 1));
}

}  // namespace
}  // namespace tutti
