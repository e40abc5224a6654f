// What is computed again instead of being kept: less memory, the same results; the same bits where each op is rounded.
#include "tutti/transform/recompute.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tutti/device/device.h"
#include "tutti/keras/fit/build.h"
#include "tutti/run/train_step.h"
#include "tutti/transform/stack.h"

namespace tutti {
namespace {

Json deep_net(int blocks = 10) {
  keras::Sequential net({12});
  for (int i = 0; i < blocks; ++i) net.dense(24, "tanh").dropout(0.2).batch_normalization();
  return net.dense(3).config();
}

Json recurrent_net() {
  keras::Sequential net({9, 12});
  for (int i = 0; i < 5; ++i) net.gru(16, true);
  return net.lstm(8).dense(3).config();
}

Graph step_of(const Json& architecture, int64_t batch, const Shape& sample) {
  const keras::Model model = keras::build(architecture, 5);
  keras::TrainingOptions options;
  options.batch = batch;
  options.input_shapes = {sample};
  options.targets = {{DType::f32, {batch, 3}}};
  options.losses = {keras::read_named("mse", "loss")};
  return train_step(model, options, keras::Optimizer(keras::read_named("adam", "optimizer"), Json())).graph;
}

struct Ran {
  int64_t peak = 0;
  std::vector<std::vector<std::byte>> losses, states;
};

Ran ran(const std::string& name, const Graph& graph) {
  const auto device = open_device(name);
  verify(graph);
  StateBuffers states;
  CompileSettings settings;
  settings.threads = 1;
  settings.states = &states;
  const auto program = device->compile(graph, settings);
  Ran out;
  out.peak = program->stats().peak_memory_bytes;
  std::mt19937 random(3);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> from, to;
  for (const Type& type : program->input_types()) from.push_back(buffers.emplace_back(device->allocate(type)).get());
  for (const Type& type : program->output_types()) to.push_back(buffers.emplace_back(device->allocate(type)).get());
  const auto read = [&](Buffer& buffer) {
    std::vector<std::byte> bytes(static_cast<size_t>(buffer.type().bytes()));
    device->to_host(buffer, bytes);
    return bytes;
  };
  for (uint64_t step = 0; step < 4; ++step) {
    for (Buffer* buffer : from) {
      Tensor values(buffer->type());
      if (values.dtype() == DType::f32)
        for (float& x : values.as<float>()) x = static_cast<float>(random() % 2000) / 1000 - 1;
      else
        for (uint64_t& x : values.as<uint64_t>()) x = step;
      device->to_device(values.bytes(), *buffer);
    }
    program->run(from, to);
    out.losses.push_back(read(*to[0]));
  }
  for (const auto& [state, buffer] : states) out.states.push_back(read(*buffer));
  return out;
}

void expect_close_losses(const Ran& kept, const Ran& computed) {
  ASSERT_EQ(kept.losses.size(), computed.losses.size());
  for (size_t i = 0; i < kept.losses.size(); ++i) {
    float a = 0, b = 0;
    std::memcpy(&a, kept.losses[i].data(), sizeof a);
    std::memcpy(&b, computed.losses[i].data(), sizeof b);
    EXPECT_NEAR(a, b, 1e-5) << "step " << i;
  }
}

void expect_smaller_and_the_same(const Graph& step, const std::string& device, double share) {
  const Graph again = recompute(step);
  EXPECT_GT(again.nodes().size(), step.nodes().size());
  EXPECT_LT(live_bytes(again), live_bytes(step));
  const Ran kept = ran(device, step), computed = ran(device, again);
  EXPECT_LT(static_cast<double>(computed.peak), share * static_cast<double>(kept.peak)) << device;
  EXPECT_NE(kept.losses.front(), kept.losses.back());
  if (device != "reference") return expect_close_losses(kept, computed);  // other nodes are fused there
  EXPECT_EQ(kept.losses, computed.losses);
  EXPECT_EQ(kept.states, computed.states);
}

TEST(recompute, takes_less_memory_and_gives_the_same) {
  const Graph deep = step_of(deep_net(), 512, {512, 12}), recurrent = step_of(recurrent_net(), 64, {64, 9, 12});
  for (const char* device : {"reference", "cpu"}) {
    expect_smaller_and_the_same(deep, device, 0.75);
    expect_smaller_and_the_same(recurrent, device, 0.9);
  }
}

TEST(recompute, works_on_stacked_steps) {
  const Graph step = stack_models(step_of(deep_net(), 128, {128, 12}), 3,
                                  [](const Node& state) { return Tensor::stacked(std::vector<Tensor>(3, state.literal)); });
  expect_smaller_and_the_same(step, "cpu", 0.8);
}

TEST(recompute, xla_computes_twice_as_well) {
  try {
    open_device("xla:cpu");
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  const Graph step = step_of(deep_net(3), 64, {64, 12});
  ASSERT_GT(recompute(step).nodes().size(), step.nodes().size());
  expect_close_losses(ran("xla:cpu", step), ran("xla:cpu", recompute(step)));
}

TEST(recompute, leaves_alone_what_has_nothing_to_gain) {
  const Graph step = step_of(keras::Sequential({4}).dense(3).config(), 2, {2, 4});
  EXPECT_EQ(recompute(step).nodes().size(), step.nodes().size());
}

}  // namespace
}  // namespace tutti
