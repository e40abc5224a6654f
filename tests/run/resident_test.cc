// After the first call a prediction on one thread allocates nothing, locks nothing and calls the kernel for nothing; inputs and outputs can
// be the program's own.
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>

#include "tests/device/run_graph.h"
#include "tests/graph/random_graph.h"
#include "tests/run/count_calls.h"
#include "tutti/data/npz.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

const std::string spots = TUTTI_TEST_DATA "/docs_demo/spots.keras";

// A compiled model with inputs that do not change and room for the outputs.
class Resident {
 public:
  Resident(const std::string& file, const std::vector<Shape>& shapes)
      : predict_(compile(load(file), {.batch = shapes.empty() ? 2 : shapes[0][0], .input_shapes = shapes, .threads = 1})) {
    for (const Type& type : predict_.input_types()) {
      inputs_.emplace_back(type);
      std::fill(inputs_.back().bytes().begin(), inputs_.back().bytes().end(), std::byte{0});
    }
    for (const Type& type : predict_.output_types()) outputs_.emplace_back(type);
    for (Tensor& tensor : inputs_) from_.push_back(tensor.bytes());
    for (Tensor& tensor : outputs_) to_.push_back(tensor.bytes());
  }
  explicit Resident(const std::string& file) : Resident(file, shapes_of(file)) {}
  void operator()() { predict_(from_, to_); }

 private:
  // Of the inputs that Keras was given, if this is a case of comparison.
  static std::vector<Shape> shapes_of(const std::string& file) {
    std::vector<Shape> out;
    const std::filesystem::path given = std::filesystem::path(file).parent_path() / "data.npz";
    if (!std::filesystem::exists(given)) return out;
    const NpzReader data(given);
    for (size_t i = 0; i < data.names().size() && data.names()[i] == "in_" + std::to_string(i); ++i)
      out.push_back(data.open(data.names()[i]).type().shape);
    return out;
  }
  CompiledModel predict_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::span<const std::byte>> from_;
  std::vector<std::span<std::byte>> to_;
};

std::vector<std::string> model_files() {
  std::vector<std::string> files{spots};
  for (const auto& file : std::filesystem::recursive_directory_iterator(TUTTI_TEST_DATA "/keras_cases")) {
    const auto model = file.path().parent_path() / "model.keras";
    if (file.path().filename() == "data.npz" && std::filesystem::exists(model) && file.path().string().find("/long_") == std::string::npos)
      files.push_back(model);
  }
  return files;
}

TEST(resident, counting_counts) {
  if (!calls_are_counted) GTEST_SKIP() << "sanitizers have an allocator of their own";
  Calls before = count_calls();
  std::mutex mutex;
  { std::lock_guard lock(mutex); }
  auto memory = std::make_unique<std::string>(100, 'x');
  EXPECT_GE(count_calls().allocations, before.allocations + 2);
  EXPECT_EQ(count_calls().locks, before.locks + 1);
}

TEST(resident, predictions_allocate_and_lock_nothing) {
  if (!calls_are_counted) GTEST_SKIP() << "sanitizers have an allocator of their own";
  for (const std::string& file : model_files()) {
    SCOPED_TRACE(file);
    Resident predict(file);
    predict();
    Calls before = count_calls();
    predict();
    Calls after = count_calls();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.locks, before.locks);
  }
}

TEST(resident, states_and_loops_allocate_nothing_on_any_device) {
  if (!calls_are_counted) GTEST_SKIP() << "sanitizers have an allocator of their own";
  Graph graph;
  Value x = graph.input("x", {DType::f32, {1, 8, 8, 3}});
  Value kernel = graph.parameter(Graph::Role::weight, "k", {DType::f32, {3, 3, 3, 4}}, RandomGraph::ramp({3, 3, 3, 4}));
  Value state = graph.parameter(Graph::Role::state, "s", {DType::f32, {4}}, RandomGraph::ramp({4}));
  Value y = maximum(convolution(x, kernel, {{1, 1}, {1, 1}, {1, 1}}), 0.0);
  y = reduce_window(pad(y, 0, {0, 1, 1, 0}, {0, 0, 0, 0}), "max", {{1, 2, 2, 1}, {1, 2, 2, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}});
  Value features = reduce(transpose(y, {0, 3, 1, 2}), "add", {2, 3});
  auto steps = scan({features}, {}, {state}, 4, false, [](Graph&, auto carries, auto, auto whole) {
    return ScanStep{{tanh(carries[0] * broadcast_to(whole[0], {1, 4}))}, {carries[0]}};
  });
  graph.output("y", dot_general(steps.carries[0], reshape(concatenate({features, features}, 0), {2, 4}), {{}, {}, {1}, {1}}));
  graph.update(state, slice(reshape(steps.stacked[0], {16}), {0}, {4}));
  for (const char* device : {"reference", "cpu"}) {
    Runner runner(graph, device);
    runner({RandomGraph::ramp({1, 8, 8, 3})});
    Calls before = count_calls();
    runner.run();
    EXPECT_EQ(count_calls(), before) << device;
  }
}

TEST(resident, weights_are_packed_once_for_all_batch_sizes) {
  if (!calls_are_counted) GTEST_SKIP() << "sanitizers have an allocator of their own";
  constexpr int64_t units = 1024, channels = 256, packed = units * units * 4;  // and the kernel, as much as its convolution needs
  struct Weights {
    Tensor matrix = RandomGraph::ramp({units, units}), kernel = RandomGraph::ramp({3, 3, channels, channels});
  };
  CompileSettings settings;
  auto device = open_device("cpu");
  auto bytes_of_compiling = [&](int64_t batch, const Weights& weights) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {batch, units}}), image = graph.input("image", {DType::f32, {batch, 8, 8, channels}});
    Value w = graph.parameter(Graph::Role::weight, "w", weights.matrix.type(), weights.matrix);
    Value k = graph.parameter(Graph::Role::weight, "k", weights.kernel.type(), weights.kernel);
    graph.output("y", dot_general(x, w, {{}, {}, {1}, {0}}));
    graph.output("z", convolution(image, k, {{1, 1}, {1, 1}, {1, 1}}));
    const int64_t before = count_calls().bytes;
    device->compile(graph, settings);
    return count_calls().bytes - before;
  };
  const Weights known, others;
  bytes_of_compiling(1, known);
  const int64_t again = std::min(bytes_of_compiling(2, known), bytes_of_compiling(2, known));  // one may begin a block for many weights
  EXPECT_GT(bytes_of_compiling(2, others), again + packed);
}

// In strict mode the kernel ends a process that calls it for anything but read, write and exit.
bool survives_strict_mode(const std::function<void()>& work) {
  pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) syscall(SYS_exit, 2);
    work();
    syscall(SYS_exit, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(resident, predictions_call_the_kernel_for_nothing) {
  if (!calls_are_counted) GTEST_SKIP() << "sanitizers call the kernel themselves";
  if (!survives_strict_mode([] {})) GTEST_SKIP() << "seccomp is not to be had here";
  EXPECT_FALSE(survives_strict_mode([] { getppid(); }));
  for (const std::string& file : model_files()) {
    Resident predict(file);
    predict();
    EXPECT_TRUE(survives_strict_mode([&] {
      for (int i = 0; i < 3; ++i) predict();
    })) << file;
  }
}

TEST(resident, the_programs_own_buffers_need_no_copy) {
  CompiledModel predict = compile(load(spots));
  std::vector<float> image(predict.input().size()), expected(predict.output().size());
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 7) / 7;
  predict(image, expected);
  std::fill(predict.input().begin(), predict.input().end(), 0.0f);
  predict.run();
  EXPECT_NE(std::vector<float>(predict.output().begin(), predict.output().end()), expected);
  std::copy(image.begin(), image.end(), predict.input().begin());
  predict.run();
  EXPECT_EQ(std::vector<float>(predict.output().begin(), predict.output().end()), expected);
}

}  // namespace
}  // namespace tutti
