#include "tutti/transform/replicate.h"

#include <gtest/gtest.h>

#include "tutti/device/device.h"
#include "tutti/device/host.h"
#include "tutti/graph/build.h"
#include "tutti/graph/compose.h"
#include "tutti/transform/accumulate.h"

namespace tutti {
namespace {

Tensor counted(const Shape& shape, float first) {
  Tensor out(DType::f32, shape);
  for (float& value : out.as<float>()) value = first++ / 16;
  return out;
}

// A weight with momentum, changed element by element; one that is clipped by its norm; and a short one.
Graph some_update() {
  Graph graph;
  const auto state = [&](const char* name, const Shape& shape, float first) {
    return graph.parameter(Graph::Role::state, name, {DType::f32, shape}, counted(shape, first));
  };
  const Value w = state("w", {40, 10}, 1), m = state("m", {40, 10}, 7), c = state("c", {30, 20}, 3), b = state("b", {10}, 2);
  const Value rate = state("rate", {}, 1);
  const Value gw = graph.input("gw", {DType::f32, {40, 10}}), gc = graph.input("gc", {DType::f32, {30, 20}}),
              gb = graph.input("gb", {DType::f32, {10}});
  const Value momentum = m * 0.5 - gw * rate;
  graph.update(m, momentum);
  graph.update(w, w + momentum);
  graph.update(c, c - gc / (sqrt(sum(square(gc), {0, 1})) + 1));
  graph.update(b, b - gb * rate);
  graph.update(rate, rate * 0.5);
  return graph;
}

TEST(replicate, ranges_cover_everything_once) {
  for (int64_t elements : {1, 15, 16, 17, 1000, 4096})
    for (int64_t parts : {1, 2, 3, 8}) {
      int64_t at = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const ElementRange range = range_of_part(elements, part, parts);
        EXPECT_EQ(range.begin, at);
        at = range.end;
      }
      EXPECT_EQ(at, elements);
    }
}

TEST(replicate, buckets_begin_with_the_last_gradient) {
  const std::vector<Type> types = {{DType::f32, {100}}, {DType::f32, {100}}, {DType::f32, {10}}, {DType::f64, {10}}};
  EXPECT_EQ(buckets_of(types, 400), (std::vector<std::vector<size_t>>{{3}, {2, 1}, {0}}));
  EXPECT_EQ(buckets_of(types, 4000), (std::vector<std::vector<size_t>>{{3}, {2, 1, 0}}));
  EXPECT_TRUE(buckets_of({}, 400).empty());
}

TEST(replicate, gradients_meet_in_one_all_reduce_a_bucket) {
  Graph graph;
  const Value a = graph.input("a", {DType::f32, {100}}), b = graph.input("b", {DType::f32, {100}}), c = graph.input("c", {DType::f32, {5}});
  const auto sums = reduce_in_buckets({a, b, c}, 2, 400);
  for (size_t i = 0; i < sums.size(); ++i) graph.output("y" + std::to_string(i), sums[i]);
  verify(graph);
  int exchanges = 0;
  for (const Node& node : graph.nodes()) exchanges += node.op == Op::all_reduce ? 1 : 0;
  EXPECT_EQ(exchanges, 2);
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i].type(), (std::vector{a, b, c})[i].type());
}

TEST(replicate, updates_that_replicas_divide_give_what_one_gives) {
  const Graph whole = some_update();
  const auto device = open_device("cpu");
  for (int64_t parts : {1, 2, 3}) {
    // One replica with the sum of the gradients.
    StateBuffers expected;
    CompileSettings settings;
    settings.states = &expected;
    const auto one = device->compile(whole, settings);
    std::vector<std::vector<std::shared_ptr<Buffer>>> gradients;  // by input, by replica
    std::vector<std::unique_ptr<Buffer>> sums;
    std::vector<Buffer*> inputs;
    for (const Type& type : one->input_types()) {
      auto& own = gradients.emplace_back();
      Tensor total(type);
      for (float& value : total.as<float>()) value = 0;
      for (int64_t r = 0; r < parts; ++r) {
        const Tensor gradient = counted(type.shape, static_cast<float>(r + 1));
        own.push_back(device->allocate(type));
        device->to_device(gradient.bytes(), *own.back());
        for (size_t i = 0; i < total.as<float>().size(); ++i) total.as<float>()[i] += gradient.as<float>()[i];
      }
      inputs.push_back(sums.emplace_back(device->allocate(type)).get());
      device->to_device(total.bytes(), *inputs.back());
    }
    one->run(inputs, {});

    std::map<std::string, std::shared_ptr<Buffer>> shared;
    std::vector<StateBuffers> states(static_cast<size_t>(parts));
    for (int64_t r = 0; r < parts; ++r) {
      const SharedUpdate update = share_update(whole, r, parts);
      verify(update.graph);
      EXPECT_EQ(update.divided_states, (std::vector<std::string>{"w", "m"}));
      EXPECT_EQ(update.divided_inputs, (std::vector<bool>{true, false, false}));
      for (const auto& name : update.divided_states) {
        auto& all = shared[name];
        const Tensor initial = counted({40, 10}, name == "w" ? 1 : 7);
        if (all == nullptr) {
          all = device->allocate(initial.type());
          device->to_device(initial.bytes(), *all);
        }
        const ElementRange range = range_of_part(400, r, parts);
        states[static_cast<size_t>(r)][name] = std::make_shared<HostView>(Type{DType::f32, {range.size()}}, all, range.begin * 4);
      }
      CompileSettings own;
      own.states = &states[static_cast<size_t>(r)];
      const auto program = device->compile(update.graph, own);
      std::vector<std::unique_ptr<Buffer>> views;
      std::vector<Buffer*> from;
      for (size_t i = 0; i < gradients.size(); ++i)
        for (int64_t k = 0; k < parts; ++k) {
          const int64_t first = update.divided_inputs[i] ? range_of_part(400, r, parts).begin * 4 : 0;
          views.push_back(std::make_unique<HostView>(program->input_types()[views.size()], gradients[i][static_cast<size_t>(k)], first));
          from.push_back(views.back().get());
        }
      program->run(from, {});
    }
    for (const auto& [name, buffer] : expected) {
      Buffer& got = shared.contains(name) ? *shared[name] : *states.back().at(name);
      const auto a = buffer->host(), b = got.host();
      ASSERT_EQ(a.size(), b.size()) << name;
      for (size_t i = 0; i < a.size() / 4; ++i)
        EXPECT_NEAR(reinterpret_cast<const float*>(a.data())[i], reinterpret_cast<const float*>(b.data())[i], 1e-4) << name << " " << i;
    }
  }
}

TEST(accumulate, adds_what_came_before) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4}});
  graph.output("loss", sum(x, {0}));
  graph.output("gradient", x * 2);
  const Graph adds = accumulate(graph, 1);
  verify(adds);
  const auto device = open_device("reference");
  const auto program = device->compile(adds);
  ASSERT_EQ(program->input_types().size(), 2u);
  HostBuffer in({DType::f32, {4}}), so_far({DType::f32, {4}}), loss({DType::f32, {}});
  auto* values = reinterpret_cast<float*>(in.host().data());
  auto* before = reinterpret_cast<float*>(so_far.host().data());
  for (int i = 0; i < 4; ++i) values[i] = static_cast<float>(i), before[i] = 10;
  Buffer *inputs[] = {&in, &so_far}, *outputs[] = {&loss, &so_far};
  for (int run = 1; run <= 2; ++run) {
    program->run(inputs, outputs);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(before[i], 10.0F + static_cast<float>(2 * run * i));
    EXPECT_EQ(*reinterpret_cast<float*>(loss.host().data()), 6);
  }
}

}  // namespace
}  // namespace tutti
