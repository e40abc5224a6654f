// What the xla device has beyond the contract: plugins, several devices, precision, runs that overlap, and plugins that fail.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/device/failing_plugin.h"
#include "tests/device/run_graph.h"
#include "tests/sanitized.h"
#include "tutti/base/error.h"
#include "tutti/device/report.h"
#include "tutti/device/xla/plugins.h"
#include "tutti/device/xla/trace.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

class xla_device : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TUTTI_CACHE", "off", 1);
    try {
      open_device("xla:cpu");
    } catch (const DeviceError& e) {
      GTEST_SKIP() << e.what();
    }
  }
};

template <class E = DeviceError, class F>
std::string complaint_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

std::string plugin_path() { return xla::find_plugin(*xla::find_platform("xla:cpu"))->path; }

Graph dense(int64_t rows, int64_t columns) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, rows}});
  std::vector<float> weights(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) / 3;
  Value w = graph.parameter(Graph::Role::weight, "w", {DType::f32, {rows, columns}}, f32({rows, columns}, weights));
  graph.output("y", dot_general(x, w, {{}, {}, {1}, {0}}));
  return graph;
}

TEST_F(xla_device, is_found_by_name_and_by_path_and_has_several_devices) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Floats expected = floats(Runner(dense(3, 2), "reference")({x})[0]);
  for (const std::string& name : {std::string("xla:cpu"), std::string("xla:cpu:1"), plugin_path(), plugin_path() + ":2"}) {
    EXPECT_EQ(floats(Runner(dense(3, 2), name)({x})[0]), expected) << name;
    EXPECT_EQ(open_device(name)->name(), name);
  }
  EXPECT_THAT(complaint_of([] { open_device("xla:cpu:99"); }), HasSubstr("[xla:cpu:99] there is no device 99: the plugin has "));
}

TEST_F(xla_device, what_is_no_plugin_is_said_to_be_none) {
  EXPECT_THAT(complaint_of([] { open_device("/nowhere/plugin.so"); }), HasSubstr("cannot open the plugin '/nowhere/plugin.so'"));
  EXPECT_THAT(complaint_of([] { open_device("libz.so.1/../nothing.so"); }), HasSubstr("cannot open the plugin"));
  EXPECT_THAT(complaint_of<InvalidArgument>([] { open_device("xla:gpu"); }),
              HasSubstr("unknown device 'xla:gpu' (did you mean 'xla:cpu'?)"));
}

TEST(xla_plugins, names_of_devices_are_taken_apart) {
  const auto one = xla::device_name("cuda:3"), other = xla::device_name("cuda@h100"), path = xla::device_name("./a:b.so:1");
  ASSERT_TRUE(one && other && path);
  EXPECT_EQ(one->platform->name, "cuda");
  EXPECT_EQ(one->index, 3u);
  EXPECT_EQ(other->target, "h100");
  EXPECT_EQ(path->path, "./a:b.so");
  EXPECT_EQ(path->index, 1u);
  EXPECT_FALSE(xla::device_name("cpu"));
  EXPECT_FALSE(xla::device_name("cuda:x"));
  EXPECT_EQ(xla::device_name("xla:cpu")->index, 0u);
}

TEST(xla_plugins, are_found_in_environments_folders_and_by_file) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / fmt::format("tutti_plugins_{}", ::getpid());
  const fs::path packages = root / "env/lib/python3.11/site-packages", flat = root / "flat";
  for (const char* name : {"jax_plugins/xla_rocm6/xla_rocm_plugin.so", "jax_plugins/xla_rocm7/xla_rocm_plugin.so", "libtpu/libtpu.so"}) {
    fs::create_directories((packages / name).parent_path());
    std::ofstream(packages / name) << "x";
  }
  fs::create_directories(flat);
  std::ofstream(flat / "pjrt_rocm.so") << "x";
  const auto find = [](const char* platform, const std::string& where) {
    setenv("TUTTI_PJRT_PLUGIN_PATH", where.c_str(), 1);
    const auto found = xla::find_plugin(*xla::find_platform(platform));
    unsetenv("TUTTI_PJRT_PLUGIN_PATH");
    return found ? found->path : "";
  };
  EXPECT_EQ(find("rocm", root / "env"), packages / "jax_plugins/xla_rocm7/xla_rocm_plugin.so");
  EXPECT_EQ(find("rocm", packages), packages / "jax_plugins/xla_rocm7/xla_rocm_plugin.so");
  EXPECT_EQ(find("tpu", "/nowhere:" + (root / "env").string()), packages / "libtpu/libtpu.so");
  EXPECT_EQ(find("rocm", flat), flat / "pjrt_rocm.so");
  EXPECT_EQ(find("rocm", flat / "pjrt_rocm.so"), flat / "pjrt_rocm.so");
  EXPECT_EQ(find("rocm", "/nowhere"), "");
  EXPECT_THAT(complaint_of([] { xla::require_plugin(*xla::find_platform("rocm")); }),
              HasSubstr("[rocm] no plugin in TUTTI_PJRT_PLUGIN_PATH, VIRTUAL_ENV or the build; hint: pip install jax-rocm7-pjrt"));
  fs::remove_all(root);
}

TEST_F(xla_device, automatic_is_an_accelerator_or_the_processor) {
  const auto chosen = open_device("auto");
  bool accelerated = false;
  for (const auto& listing : list_devices()) accelerated |= listing.usable && listing.kind == "accelerator";
  EXPECT_EQ(chosen->name() != "cpu", accelerated);
}

TEST_F(xla_device, rounds_products_where_that_is_asked_for_and_other_devices_refuse) {
  Graph graph = dense(64, 3);
  std::vector<float> values(128);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + static_cast<float>(i) / 1000;
  const auto run = [&](Precision precision) {
    auto device = open_device("xla:cpu");
    CompileSettings settings;
    settings.precision = precision;
    auto program = device->compile(graph, settings);
    auto in = device->allocate({DType::f32, {2, 64}}), out = device->allocate({DType::f32, {2, 3}});
    const Tensor x = f32({2, 64}, values);
    device->to_device(x.bytes(), *in);
    Buffer *from[] = {in.get()}, *to[] = {out.get()};
    program->run(from, to);
    Tensor result(DType::f32, {2, 3});
    device->to_host(*out, result.bytes());
    return floats(result);
  };
  const Floats exact = run(Precision::float32), rounded = run(Precision::bfloat16);
  EXPECT_NE(exact, rounded);
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(exact[i], rounded[i], 0.01 * std::fabs(exact[i]));
  EXPECT_EQ(run(Precision::tf32), exact);  // the processor has none
  for (const char* name : {"cpu", "reference"}) {
    CompileSettings settings;
    settings.precision = Precision::tf32;
    EXPECT_THAT(complaint_of<Unsupported>([&] { open_device(name)->compile(graph, settings); }),
                HasSubstr(fmt::format("[{}] products are computed in float32 here; got --precision tf32", name)));
  }
}

TEST_F(xla_device, what_does_not_fit_is_refused_before_it_runs) {
  Graph graph;
  graph.output("y", tanh(graph.input("x", {DType::f32, {int64_t{1} << 38}})));
  const std::string message = complaint_of<OutOfMemory>([&] { open_device("xla:cpu")->compile(graph); });
  EXPECT_THAT(message, HasSubstr("[xla:cpu] the program needs 2199023255"));
  EXPECT_THAT(message, HasSubstr(" bytes are available"));
}

TEST_F(xla_device, a_buffer_that_was_never_written_is_an_error) {
  auto device = open_device("xla:cpu");
  auto program = device->compile(dense(3, 2));
  auto in = device->allocate({DType::f32, {2, 3}}), out = device->allocate({DType::f32, {2, 2}});
  auto strange = open_device("cpu")->allocate({DType::f32, {2, 3}});
  Buffer *from[] = {in.get()}, *other[] = {strange.get()}, *to[] = {out.get()};
  EXPECT_THAT(complaint_of<InvalidArgument>([&] { program->run(from, to); }), HasSubstr("input 0 was never written"));
  EXPECT_THAT(complaint_of<InvalidArgument>([&] { program->run(other, to); }), HasSubstr("another device's"));
}

TEST_F(xla_device, counts_the_kernels_of_a_run) {
  Runner runner(dense(64, 32), "xla:cpu");
  EXPECT_GE(runner.program().stats().kernels, 1);
  EXPECT_LE(runner.program().stats().kernels, 3);
}

// On the processor XLA slices inside of the loops that read a slice, unless it is there before them, and writes scalar code then.
TEST_F(xla_device, a_recurrent_step_reads_its_slice_in_one_piece) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {5, 4, 64}}), start = full(graph, {DType::f32, {4, 64}}, 0);
  Value w = graph.parameter(Graph::Role::weight, "w", {DType::f32, {64, 64}}, f32({64, 64}, Floats(64 * 64, 0.01f)));
  for (bool reverse : {false, true}) {
    auto out = scan({start}, {x}, {w}, 5, reverse, [&](Graph&, auto carries, auto slices, auto whole) {
      const Value next = tanh(dot_general(carries[0], whole[0], {{}, {}, {1}, {0}}) + slices[0]) * carries[0] + slices[0];
      return ScanStep{{next}, {next}};
    });
    graph.output(fmt::format("last{}", reverse ? 1 : 0), out.carries[0]);
    graph.output(fmt::format("all{}", reverse ? 1 : 0), out.stacked[0]);
  }
  CompileReport report;
  CompileSettings settings;
  settings.report = &report;
  open_device("xla:cpu")->compile(graph, settings);
  int slices = 0;
  for (const StepReport& step : report.steps) {
    const auto covers = [&](const char* op) { return std::count(step.ops.begin(), step.ops.end(), op) > 0; };
    slices += covers("dynamic-slice");
    EXPECT_FALSE(covers("dynamic-slice") && covers("tanh")) << fmt::format("{}", fmt::join(step.ops, ", "));
  }
  EXPECT_GE(slices, 2);
  Floats values(5 * 4 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) / 13 - 0.5f;
  const auto wanted = Runner(graph, "reference")({f32({5, 4, 64}, values)}), got = Runner(graph, "xla:cpu")({f32({5, 4, 64}, values)});
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_THAT(floats(got[i]), testing::Pointwise(testing::FloatNear(1e-6f), floats(wanted[i])));
}

int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * 4096;
}

void run_without_growth(int runs) {
  if (sanitized) GTEST_SKIP() << "sanitizers keep what was freed";
  auto device = open_device("xla:cpu");
  Graph graph = dense(256, 256);
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {4096}}, Tensor::of<float>({4096}, Floats(4096)));
  graph.update(s, s * 0.5 + 1.0);  // in its place, as weights are trained
  graph.output("s", slice(s, {0}, {1}));
  Runner runner(graph, "xla:cpu");
  const Tensor x = f32({2, 256}, Floats(512, 1));
  for (int i = 0; i < 500; ++i) runner({x});
  const int64_t before = resident_bytes();
  for (int i = 0; i < runs; ++i) runner({x});
  EXPECT_LT(resident_bytes() - before, 4 << 20) << "after " << runs << " runs";
  EXPECT_NEAR(floats(runner({x})[1])[0], 2, 1e-6);
}

TEST_F(xla_device, takes_no_more_memory_with_every_run) { run_without_growth(5'000); }
TEST_F(xla_device, DISABLED_long_takes_no_more_memory_after_100000_runs) { run_without_growth(100'000); }

#ifdef TUTTI_FAILING_PLUGIN

TEST_F(xla_device, weights_go_over_once_whatever_the_batch) {
  auto device = open_device(failing_plugin());
  const Tensor w = f32({64, 8}, Floats(512, 1));
  CompileSettings settings;
  std::vector<std::unique_ptr<Program>> programs;
  const int before = count_uploads();
  for (int64_t batch : {1, 2, 5}) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {batch, 64}});
    graph.output("y", dot_general(x, graph.parameter(Graph::Role::weight, "w", w.type(), w), {{}, {}, {1}, {0}}));
    programs.push_back(device->compile(graph, settings));
    programs.push_back(programs.back()->context());
  }
  EXPECT_EQ(count_uploads() - before, 1);
}

Graph counter() {
  Graph graph;
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {1}}, f32({1}, {0}));
  graph.output("s", s);
  graph.update(s, s + 1.0);
  return graph;
}

TEST_F(xla_device, an_error_in_mid_run_leaves_program_and_process_usable) {
  Runner runner(counter(), failing_plugin());
  const auto result = [&] { return floats(runner({})[0]); };
  EXPECT_EQ(result(), (Floats{0}));
  EXPECT_EQ(result(), (Floats{1}));
  const std::string expected = "[xla] running the program: the device fell off the bus";
  std::string trace;
  xla::hear_traces([&](std::string_view lines) { trace += lines; });
  fail_runs(13);  // internal
  EXPECT_EQ(complaint_of<DeviceError>(result), expected);
  EXPECT_EQ(trace, "=== Source Location Trace: ===\nfailing_plugin.cc:1");
  xla::hear_traces({});
  EXPECT_EQ(floats(Runner(counter(), "cpu")({})[0]), (Floats{0}));
  EXPECT_EQ(floats(Runner(counter(), "xla:cpu")({})[0]), (Floats{0}));
  fail_runs(8);  // resource exhausted
  EXPECT_EQ(complaint_of<OutOfMemory>(result), expected);
  fail_runs(0);
  EXPECT_EQ(result(), (Floats{2}));  // as if nothing had been
  EXPECT_EQ(result(), (Floats{3}));
}

#endif

}  // namespace
}  // namespace tutti
