// The rules that every device keeps, on every device present that computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <thread>

#include "tests/device/run_graph.h"
#include "tests/graph/random_graph.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

using Floats = std::vector<float>;

std::vector<std::string> computing_devices() {
  std::vector<std::string> out;
  for (const auto& listing : list_devices())
    if (listing.usable && listing.kind != "none") out.push_back(listing.name);
  return out;
}

class every_device : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(each, every_device, testing::ValuesIn(computing_devices()), [](const auto& test) {
  std::string name = test.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST_P(every_device, gives_inputs_weights_constants_and_views_as_outputs) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2}});
  Value w = graph.parameter(Graph::Role::weight, "w", {DType::f32, {2}}, f32({2}, {5, 6}));
  Value c = constant<float>(graph, {2}, {7, 8});
  graph.output("x", x);
  graph.output("view", reshape(x, {1, 2}));
  graph.output("w", w);
  graph.output("c", c);
  graph.output("again", x);
  auto out = Runner(graph, GetParam())({f32({2}, {1, 2})});
  EXPECT_EQ(floats(out[0]), (Floats{1, 2}));
  EXPECT_EQ(floats(out[1]), (Floats{1, 2}));
  EXPECT_EQ(floats(out[2]), (Floats{5, 6}));
  EXPECT_EQ(floats(out[3]), (Floats{7, 8}));
  EXPECT_EQ(floats(out[4]), (Floats{1, 2}));
}

TEST_P(every_device, leaves_a_states_first_value_alone) {
  Graph graph;
  Tensor first = f32({1}, {1});
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {1}}, first);
  graph.update(s, s + 1.0);
  Runner runner(graph, GetParam());
  runner.run();
  EXPECT_EQ(floats(first), (Floats{1}));
}

TEST_P(every_device, updates_states_after_outputs_are_written) {
  Graph graph;
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {1}}, f32({1}, {10}));
  graph.output("old", s);
  graph.output("new", s + 1.0);
  graph.update(s, s + 1.0);
  Runner runner(graph, GetParam());
  for (float step = 0; step < 4; ++step) {
    auto out = runner({});
    EXPECT_EQ(floats(out[0]), (Floats{10 + step}));
    EXPECT_EQ(floats(out[1]), (Floats{11 + step}));
  }
}

TEST_P(every_device, states_can_be_exchanged) {
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
  Runner runner(graph, GetParam());
  runner({});
  auto out = runner({});
  EXPECT_EQ(floats(out[0]), (Floats{3, 4}));
  EXPECT_EQ(floats(out[1]), (Floats{1, 2}));
  EXPECT_EQ(floats(out[2]), (Floats{4, 6}));
  out = runner({});
  EXPECT_EQ(floats(out[0]), (Floats{1, 2}));
  EXPECT_EQ(floats(out[1]), (Floats{3, 4}));
}

TEST_P(every_device, programs_of_one_graph_have_their_own_states) {
  Graph graph;
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {1}}, f32({1}, {0}));
  graph.output("s", s);
  graph.update(s, s + 1.0);
  Runner a(graph, GetParam()), b(graph, GetParam());
  a({});
  a({});
  EXPECT_EQ(floats(a({})[0]), (Floats{2}));
  EXPECT_EQ(floats(b({})[0]), (Floats{0}));
}

TEST_P(every_device, scan_sums_along_time_in_both_directions) {
  for (bool reverse : {false, true}) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {4}});
    auto out = scan({scalar(graph, DType::f32, 0)}, {x}, {}, 4, reverse, [](Graph&, auto carries, auto slices, auto) {
      return ScanStep{{carries[0] + slices[0]}, {carries[0] + slices[0]}};
    });
    graph.output("sums", out.stacked[0]);
    graph.output("total", out.carries[0]);
    Runner runner(graph, GetParam());
    for (int again = 0; again < 2; ++again) {
      auto result = runner({f32({4}, {1, 10, 100, 1000})});
      EXPECT_EQ(floats(result[0]), reverse ? (Floats{1111, 1110, 1100, 1000}) : (Floats{1, 11, 111, 1111}));
      EXPECT_EQ(floats(result[1]), (Floats{1111}));
    }
  }
}

TEST_P(every_device, says_which_argument_does_not_fit_and_stays_usable) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2}});
  graph.output("y", x + 1.0);
  auto device = open_device(GetParam());
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
  const Tensor values = f32({2}, {1, 2}), more = f32({3}, {1, 2, 3});
  Tensor result(DType::f32, {2});
  EXPECT_THROW(device->to_device(more.bytes(), *right), InvalidArgument);
  EXPECT_THROW(device->to_host(*wrong, result.bytes()), InvalidArgument);
  device->to_device(values.bytes(), *right);
  EXPECT_EQ(complaint({right.get()}, {out.get()}), "");
  device->to_host(*out, result.bytes());
  EXPECT_EQ(floats(result), (Floats{2, 3}));
}

TEST_P(every_device, needs_the_values_of_weights_and_states) {
  for (auto role : {Graph::Role::weight, Graph::Role::state}) {
    Graph graph;
    graph.output("y", tanh(graph.parameter(role, "w", {DType::f32, {2}})));
    try {
      open_device(GetParam())->compile(graph);
      FAIL();
    } catch (const InvalidArgument& e) {
      EXPECT_EQ(std::string(e.what()), fmt::format("[{}] {} 'w' has no value", GetParam(), name(role)));
    }
  }
}

TEST_P(every_device, runs_programs_on_several_threads) {
  Graph graph = RandomGraph(7).make(60);
  Runner alone(graph, GetParam());
  std::vector<Tensor> inputs{RandomGraph::ramp({4, 6}), RandomGraph::ramp({6})};
  auto expected = alone(inputs);
  std::vector<std::thread> threads;
  std::vector<int> agree(4);
  for (size_t t = 0; t < agree.size(); ++t)
    threads.emplace_back([&, t] {
      Runner own(graph, GetParam());
      auto out = own(inputs);
      for (size_t i = 0; i < out.size(); ++i) agree[t] += floats(out[i]) == floats(expected[i]);
    });
  for (auto& thread : threads) thread.join();
  for (int count : agree) EXPECT_EQ(count, static_cast<int>(expected.size()));
}

}  // namespace
}  // namespace tutti
