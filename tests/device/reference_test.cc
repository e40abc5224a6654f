#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/device/run_graph.h"
#include "tests/graph/random_graph.h"
#include "tutti/base/error.h"
#include "tutti/device/reference/kernel.h"

namespace tutti {
namespace {

using Floats = std::vector<float>;

TEST(reference, has_a_kernel_for_every_op_that_is_no_view) {
  for (const auto& row : op_table()) {
    bool none = row.op == Op::parameter || row.op == Op::constant || row.op == Op::reshape || row.op == Op::bitcast_convert;
    EXPECT_EQ(reference::find_kernel(row.op) == nullptr, none) << row.name;
  }
}

TEST(reference, gives_inputs_weights_constants_and_views_as_outputs) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2}});
  Value w = graph.parameter(Graph::Role::weight, "w", {DType::f32, {2}}, f32({2}, {5, 6}));
  Value c = constant<float>(graph, {2}, {7, 8});
  graph.output("x", x);
  graph.output("view", reshape(x, {1, 2}));
  graph.output("w", w);
  graph.output("c", c);
  graph.output("again", x);
  auto out = Runner(graph, "reference")({f32({2}, {1, 2})});
  EXPECT_EQ(floats(out[0]), (Floats{1, 2}));
  EXPECT_EQ(floats(out[1]), (Floats{1, 2}));
  EXPECT_EQ(floats(out[2]), (Floats{5, 6}));
  EXPECT_EQ(floats(out[3]), (Floats{7, 8}));
  EXPECT_EQ(floats(out[4]), (Floats{1, 2}));
}

TEST(reference, leaves_a_states_first_value_alone) {
  Graph graph;
  Tensor first = f32({1}, {1});
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {1}}, first);
  graph.update(s, s + 1.0);
  Runner runner(graph, "reference");
  runner.run();
  EXPECT_EQ(floats(first), (Floats{1}));
}

TEST(reference, updates_states_after_outputs_are_written) {
  Graph graph;
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {1}}, f32({1}, {10}));
  graph.output("old", s);
  graph.output("new", s + 1.0);
  graph.update(s, s + 1.0);
  Runner runner(graph, "reference");
  for (float step = 0; step < 4; ++step) {
    auto out = runner({});
    EXPECT_EQ(floats(out[0]), (Floats{10 + step}));
    EXPECT_EQ(floats(out[1]), (Floats{11 + step}));
  }
}

TEST(reference, states_can_be_exchanged) {
  Graph graph;
  Value a = graph.parameter(Graph::Role::state, "a", {DType::f32, {2}}, f32({2}, {1, 2}));
  Value b = graph.parameter(Graph::Role::state, "b", {DType::f32, {2}}, f32({2}, {3, 4}));
  Value c = graph.parameter(Graph::Role::state, "c", {DType::f32, {2}}, f32({2}, {5, 6}));
  graph.output("a", a);
  graph.output("b", b);
  graph.output("c", c);
  graph.update(a, b);
  graph.update(b, reshape(reshape(a, {1, 2}), {2}));  // a view is the same bytes
  graph.update(c, a + b);
  Runner runner(graph, "reference");
  runner({});
  auto out = runner({});
  EXPECT_EQ(floats(out[0]), (Floats{3, 4}));
  EXPECT_EQ(floats(out[1]), (Floats{1, 2}));
  EXPECT_EQ(floats(out[2]), (Floats{4, 6}));
  out = runner({});
  EXPECT_EQ(floats(out[0]), (Floats{1, 2}));
  EXPECT_EQ(floats(out[1]), (Floats{3, 4}));
}

TEST(reference, programs_of_one_graph_have_their_own_states) {
  Graph graph;
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {1}}, f32({1}, {0}));
  graph.output("s", s);
  graph.update(s, s + 1.0);
  Runner a(graph, "reference"), b(graph, "reference");
  a({});
  a({});
  EXPECT_EQ(floats(a({})[0]), (Floats{2}));
  EXPECT_EQ(floats(b({})[0]), (Floats{0}));
}

TEST(reference, scan_sums_along_time_in_both_directions) {
  for (bool reverse : {false, true}) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {4}});
    auto out = scan({scalar(graph, DType::f32, 0)}, {x}, {}, 4, reverse, [](Graph&, auto carries, auto slices, auto) {
      return ScanStep{{carries[0] + slices[0]}, {carries[0] + slices[0]}};
    });
    graph.output("sums", out.stacked[0]);
    graph.output("total", out.carries[0]);
    Runner runner(graph, "reference");
    for (int again = 0; again < 2; ++again) {
      auto result = runner({f32({4}, {1, 10, 100, 1000})});
      EXPECT_EQ(floats(result[0]), reverse ? (Floats{1111, 1110, 1100, 1000}) : (Floats{1, 11, 111, 1111}));
      EXPECT_EQ(floats(result[1]), (Floats{1111}));
    }
  }
}

TEST(reference, sums_do_not_lose_small_terms) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {3000}});
  graph.output("sum", reduce(x, "add", {0}));
  graph.output("dot", dot_general(x, full_like(x, 1), {{}, {}, {0}, {0}}));
  Floats values(3000, 1);
  values[0] = 1e9f;
  values[2999] = -1e9f;
  auto out = Runner(graph, "reference")({f32({3000}, values)});
  EXPECT_EQ(floats(out[0]), (Floats{2998}));
  EXPECT_EQ(floats(out[1]), (Floats{2998}));
}

TEST(reference, says_which_argument_does_not_fit_and_stays_usable) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2}});
  graph.output("y", x + 1.0);
  auto device = open_device("reference");
  auto program = device->compile(graph);
  auto right = device->allocate({DType::f32, {2}}), wrong = device->allocate({DType::f32, {3}}), out = device->allocate({DType::f32, {2}});
  auto complaint = [&](std::vector<Buffer*> inputs, std::vector<Buffer*> outputs) -> std::string {
    try {
      program->run(inputs, outputs);
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(complaint({wrong.get()}, {out.get()}), "[run] input 0 is f32[2]; got f32[3]");
  EXPECT_EQ(complaint({right.get()}, {wrong.get()}), "[run] output 0 is f32[2]; got f32[3]");
  EXPECT_EQ(complaint({}, {out.get()}), "[run] the program has 1 inputs; got 0");
  EXPECT_EQ(complaint({right.get()}, {}), "[run] the program has 1 outputs; got 0");
  EXPECT_EQ(complaint({nullptr}, {out.get()}), "[run] input 0 is f32[2]; got no buffer");
  EXPECT_THROW(device->to_device(wrong->host(), *right), InvalidArgument);
  EXPECT_THROW(device->to_host(*wrong, right->host()), InvalidArgument);
  const Tensor values = f32({2}, {1, 2});
  device->to_device(values.bytes(), *right);
  EXPECT_EQ(complaint({right.get()}, {out.get()}), "");
  EXPECT_EQ(reinterpret_cast<float*>(out->host().data())[1], 3);
}

TEST(reference, needs_the_values_of_weights_and_states) {
  for (auto role : {Graph::Role::weight, Graph::Role::state}) {
    Graph graph;
    graph.output("y", tanh(graph.parameter(role, "w", {DType::f32, {2}})));
    try {
      open_device("reference")->compile(graph);
      FAIL();
    } catch (const InvalidArgument& e) {
      EXPECT_EQ(std::string(e.what()), fmt::format("[reference] {} 'w' has no value", name(role)));
    }
  }
}

TEST(reference, counts_its_work) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 3}});
  Value w = graph.parameter(Graph::Role::weight, "w", {DType::f32, {3, 4}}, RandomGraph::ramp({3, 4}));
  graph.output("y", tanh(reshape(dot_general(x, w, {{}, {}, {1}, {0}}), {8})));
  Runner runner(graph, "reference");
  const auto& stats = runner.program().stats();
  EXPECT_EQ(stats.kernels, 2);
  EXPECT_EQ(stats.flops, 2 * 2 * 3 * 4 + 8);
  EXPECT_EQ(stats.bytes, (6 + 12 + 8) * 4 + (8 + 8) * 4);
  EXPECT_EQ(stats.weight_bytes, 48);
  EXPECT_GE(stats.peak_memory_bytes, 64);
}

TEST(reference, runs_programs_on_several_threads) {
  Graph graph = RandomGraph(7).make(60);
  Runner alone(graph, "reference");
  std::vector<Tensor> inputs{RandomGraph::ramp({4, 6}), RandomGraph::ramp({6})};
  auto expected = alone(inputs);
  std::vector<std::thread> threads;
  std::vector<int> agree(4);
  for (size_t t = 0; t < agree.size(); ++t)
    threads.emplace_back([&, t] {
      Runner own(graph, "reference");
      auto out = own(inputs);
      for (size_t i = 0; i < out.size(); ++i) agree[t] += floats(out[i]) == floats(expected[i]);
    });
  for (auto& thread : threads) thread.join();
  for (int count : agree) EXPECT_EQ(count, static_cast<int>(expected.size()));
}

}  // namespace
}  // namespace tutti
