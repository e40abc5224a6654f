// What the xla device promises to many threads; the thread sanitizer watches our side of it. Each test is a process of its own under ctest,
// so the first use of the plugin is by many threads, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include "tests/device/failing_plugin.h"
#include "tests/device/run_graph.h"
#include "tests/scratch.h"
#include "tutti/base/error.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

using Floats = std::vector<float>;
constexpr const char* name = "xla:cpu";
constexpr int workers = 6, rounds = 40;

class xla_threads : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TUTTI_CACHE", "off", 1);
    const auto all = list_devices();
    if (std::ranges::none_of(all, [](const DeviceListing& one) { return one.name == name && one.usable; }))
      GTEST_SKIP() << "there is no plugin for " << name;
  }
};

// body(worker) on a thread each; what they throw fails the test.
void at_once(int count, const std::function<void(int)>& body) {
  std::vector<std::string> problems(static_cast<size_t>(count));
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < count; ++w)
      threads.emplace_back([&, w] {
        try {
          body(w);
        } catch (const std::exception& e) {
          problems[static_cast<size_t>(w)] = e.what();
        }
      });
  }
  EXPECT_EQ(problems, std::vector<std::string>(problems.size()));
}

// y = x + s, and s becomes s + 1 in its place.
Graph counting(int64_t width) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {width}});
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {width}}, f32({width}, Floats(static_cast<size_t>(width))));
  Value w = graph.parameter(Graph::Role::weight, "w", {DType::f32, {width}}, f32({width}, Floats(static_cast<size_t>(width), 1)));
  graph.output("y", x * w + s);
  graph.update(s, s + 1.0);
  return graph;
}

// Two pairs of buffers of a program: the next input goes over before the last output is asked for.
void count_in_halves(Device& device, Program& program, int width, int from) {
  const Type type{DType::f32, {width}};
  std::unique_ptr<Buffer> in[2], out[2];
  for (int i = 0; i < 2; ++i) {
    in[i] = device.allocate(type);
    out[i] = device.allocate(type);
  }
  const auto begin = [&](int round) {
    device.to_device(f32({width}, Floats(static_cast<size_t>(width), 100.0f * static_cast<float>(round))).bytes(), *in[round % 2]);
    Buffer *inputs[] = {in[round % 2].get()}, *outputs[] = {out[round % 2].get()};
    program.run(inputs, outputs);
  };
  begin(0);
  for (int round = 0; round < rounds; ++round) {
    if (round + 1 < rounds) begin(round + 1);
    Tensor got(DType::f32, {width});
    device.to_host(*out[round % 2], got.bytes());
    const float wanted = static_cast<float>(101 * round + from);
    if (floats(got) != Floats(static_cast<size_t>(width), wanted)) fail<InternalError>("test", "round {}: {}", round, floats(got)[0]);
  }
}

TEST_F(xla_threads, devices_are_opened_and_programs_compiled_at_the_same_time) {
  at_once(workers, [](int w) {
    const auto device = open_device(fmt::format("{}:{}", name, w % 2));
    EXPECT_GT(device->memory_bytes(), 0);
    const auto program = device->compile(counting(8 + w % 3));  // some the same, some not
    count_in_halves(*device, *program, 8 + w % 3, 0);
  });
}

TEST_F(xla_threads, contexts_of_one_program_overlap_their_batches_while_others_wait_for_the_device) {
  const auto device = open_device(name);
  const auto program = device->compile(counting(64));
  std::atomic<int> left = workers;
  std::jthread waiting([&] {
    while (left > 0) device->synchronize();
  });
  at_once(workers, [&](int) {
    count_in_halves(*device, *program->context(), 64, 0);
    --left;
  });
  left = 0;
}

TEST_F(xla_threads, states_that_are_trained_on_go_from_thread_to_thread) {
  const auto device = open_device(name);
  StateBuffers states;
  CompileSettings settings;
  settings.states = &states;
  const auto program = device->compile(counting(16), settings);
  for (int w = 0; w < 3; ++w) std::jthread([&] { count_in_halves(*device, *program, 16, w * rounds); });
  Tensor got(DType::f32, {16});
  device->to_host(*states.at("s"), got.bytes());
  EXPECT_EQ(floats(got), Floats(16, 3.0f * rounds));
}

TEST_F(xla_threads, programs_of_one_model_are_compiled_at_the_same_time_and_share_its_weights) {
  const auto device = open_device(name);
  const Tensor w = f32({16, 4}, Floats(64, 0.5f));
  CompileSettings first;
  const auto graph = [&](int64_t batch) {
    Graph out;
    Value x = out.input("x", {DType::f32, {batch, 16}});
    out.output("y", dot_general(x, out.parameter(Graph::Role::weight, "w", w.type(), w), {{}, {}, {1}, {0}}));
    return out;
  };
  const auto kept = device->compile(graph(1), first);
  at_once(workers, [&](int worker) {
    CompileSettings own;
    own.cache = first.cache;
    const int64_t batch = 1 + worker % 3;
    const auto program = device->compile(graph(batch), own);
    auto in = device->allocate({DType::f32, {batch, 16}}), out = device->allocate({DType::f32, {batch, 4}});
    device->to_device(f32({batch, 16}, Floats(static_cast<size_t>(16 * batch), 1)).bytes(), *in);
    Buffer *from[] = {in.get()}, *to[] = {out.get()};
    program->run(from, to);
    Tensor got(DType::f32, {batch, 4});
    device->to_host(*out, got.bytes());
    if (floats(got) != Floats(static_cast<size_t>(4 * batch), 8)) fail<InternalError>("test", "{}", floats(got)[0]);
  });
}

TEST_F(xla_threads, programs_are_kept_on_disk_and_loaded_at_the_same_time) {
  const Scratch scratch;
  setenv("TUTTI_CACHE", scratch.path("kept").c_str(), 1);
  const auto device = open_device(name);
  at_once(workers, [&](int w) {
    for (int i = 0; i < 4; ++i) {
      const int width = 4 + (w + i) % 3;
      count_in_halves(*device, *device->compile(counting(width)), width, 0);
    }
  });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path("kept")), {}), 3);
}

// Two programs at once, each for two devices that meet in every run: one must not take the threads that the other's devices wait for.
TEST_F(xla_threads, replicated_programs_run_at_the_same_time) {
  const auto one = open_device("xla:cpu:0"), two = open_device("xla:cpu:1");
  Graph graph;
  Value x = graph.input("x", {DType::f32, {32}});
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {32}}, f32({32}, Floats(32)));
  Value sum = all_reduce({x}, 2)[0];
  graph.output("y", sum + s);
  graph.update(s, s + sum);
  CompileSettings settings;
  settings.replicas = {one, two};
  const auto program = one->compile(graph, settings);
  at_once(4, [&](int) {
    const auto own = program->context();
    const Type type{DType::f32, {32}};
    std::unique_ptr<Buffer> buffers[] = {one->allocate(type), two->allocate(type), one->allocate(type), two->allocate(type)};
    one->to_device(f32({32}, Floats(32, 1)).bytes(), *buffers[0]);
    two->to_device(f32({32}, Floats(32, 2)).bytes(), *buffers[1]);
    Buffer *from[] = {buffers[0].get(), buffers[1].get()}, *to[] = {buffers[2].get(), buffers[3].get()};
    for (int round = 1; round <= 5 * rounds; ++round) {
      own->run(from, to);
      Tensor got(DType::f32, {32});
      (round % 2 == 0 ? one : two)->to_host(*to[round % 2 == 0 ? 0 : 1], got.bytes());
      if (floats(got)[0] != static_cast<float>(3 * round)) fail<InternalError>("test", "round {}: {}", round, floats(got)[0]);
    }
  });
}

#ifdef TUTTI_FAILING_PLUGIN

TEST_F(xla_threads, errors_that_come_and_go_in_mid_run_leave_every_thread_its_states) {
  const auto device = open_device(failing_plugin());
  const auto program = device->compile(counting(8));
  std::atomic<int> left = workers;
  std::jthread spoiling([&] {
    for (int i = 0; left > 0; ++i) {
      fail_runs(i % 3 == 0 ? 13 : 0);
      std::this_thread::yield();
    }
    fail_runs(0);
  });
  at_once(workers, [&](int) {
    const auto own = program->context();
    auto in = device->allocate({DType::f32, {8}}), out = device->allocate({DType::f32, {8}});
    device->to_device(f32({8}, Floats(8)).bytes(), *in);
    Buffer *from[] = {in.get()}, *to[] = {out.get()};
    for (int done = 0; done < rounds;) {
      try {
        own->run(from, to);
      } catch (const DeviceError&) {
        continue;
      }
      Tensor got(DType::f32, {8});
      device->to_host(*out, got.bytes());
      if (floats(got)[0] != static_cast<float>(done++)) fail<InternalError>("test", "run {}: {}", done, floats(got)[0]);
    }
    --left;
  });
  left = 0;
}

#endif

}  // namespace
}  // namespace tutti
