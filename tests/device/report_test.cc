// What a device tells of the programs it compiles.
#include "tutti/device/report.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/device/run_graph.h"
#include "tests/graph/random_graph.h"
#include "tutti/device/host.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

struct Compiled {
  CompileReport report;
  std::unique_ptr<Program> program;
};
Compiled compile(const Graph& graph, const std::string& device) {
  Compiled out;
  CompileSettings settings{1, {}, &out.report};
  out.program = open_device(device)->compile(graph, settings);
  return out;
}

Value weight(Graph& graph, Shape shape) { return graph.parameter(Graph::Role::weight, "w", {DType::f32, shape}, RandomGraph::ramp(shape)); }

// x W + b, relu; then a scan of 5 steps, each tanh(h W).
Graph net() {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 16}});
  Value y = maximum(dot_general(x, weight(graph, {16, 8}), {{}, {}, {1}, {0}}) + weight(graph, {8}), 0.0);
  auto loop = scan({y}, {}, {weight(graph, {8, 8})}, 5, false, [](Graph&, auto carries, auto, auto whole) {
    return ScanStep{{tanh(dot_general(carries[0], whole[0], {{}, {}, {1}, {0}}))}, {}};
  });
  graph.output("y", loop.carries[0]);
  return graph;
}

TEST(report, a_scan_counts_the_kernels_of_its_compiled_body_each_time) {
  auto cpu = compile(net(), "cpu"), reference = compile(net(), "reference"), null = compile(net(), "null");
  EXPECT_EQ(cpu.program->stats().kernels, 1 + 5);            // the matmul with what follows it; the body's one
  EXPECT_EQ(reference.program->stats().kernels, 5 + 5 * 2);  // broadcast twice, dot_general, add, maximum; dot_general and tanh
  EXPECT_EQ(null.program->stats().kernels, reference.program->stats().kernels);
}

TEST(report, steps_say_what_they_cover_and_what_it_costs) {
  CompileReport report = compile(net(), "cpu").report;
  ASSERT_EQ(report.steps.size(), 3u);
  const StepReport &dense = report.steps[0], &loop = report.steps[1], &body = report.steps[2];
  EXPECT_EQ(dense.kernel, "matmul+bias+relu");
  EXPECT_EQ(dense.ops, (std::vector<std::string>{"dot_general", "add", "maximum"}));
  EXPECT_EQ(dense.result, (Type{DType::f32, {2, 8}}));
  EXPECT_EQ(dense.flops, 2 * 2 * 16 * 8 + 2 * 2 * 8);
  EXPECT_EQ(dense.weight_bytes, 4 * (16 * 8 + 8 + 1));  // and the zero
  EXPECT_EQ(dense.value_bytes, 4 * (2 * 16 + 2 * 8));
  EXPECT_EQ(loop.kernel, "scan");
  EXPECT_EQ(loop.depth, 0);
  EXPECT_EQ(body.kernel, "matmul+tanh");
  EXPECT_EQ(body.depth, 1);
  EXPECT_EQ(body.runs, 5);
  EXPECT_EQ(body.flops, 2 * 2 * 8 * 8 + 2 * 8);
  EXPECT_EQ(loop.all_flops(), body.all_flops());
  EXPECT_EQ(loop.all_bytes(), body.all_bytes());
}

TEST(report, a_loop_that_reads_slices_counts_what_it_reads_once) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 64}});
  auto part = [&](int64_t from) { return slice(x, {0, from}, {4, from + 16}); };
  graph.output("y", tanh(part(0)) * part(16) + part(16) + part(0));
  CompileReport report = compile(graph, "cpu").report;
  int64_t bytes = 0;
  for (const StepReport& step : report.steps) bytes += step.value_bytes;
  EXPECT_EQ(bytes, 4 * (4 * 32 + 4 * 16)) << report.steps.size() << " steps";
}

TEST(report, passes_are_those_of_the_cpu_in_order) {
  EXPECT_TRUE(compile(net(), "reference").report.passes.empty());
  auto passes = compile(net(), "cpu").report.passes;
  ASSERT_GE(passes.size(), 9u);
  EXPECT_EQ(passes[0].name, "remove_dead");
  for (size_t i = 1; i < passes.size(); ++i) EXPECT_EQ(passes[i].nodes_before, passes[i - 1].nodes_after);
}

TEST(report, memory_is_planned_weights_constants_and_values) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {256}});
  for (int i = 0; i < 6; ++i) x = reverse(x + weight(graph, {256}), {0});
  graph.output("y", x);
  for (const char* device : {"cpu", "reference", "null"}) {
    MemoryReport memory = compile(graph, device).report.memory;
    EXPECT_EQ(memory.weights, 6 * 1024) << device;
    EXPECT_LE(memory.arena, 3 * 1024 + 64 * 1024) << device;  // cpu's loops have scratch memory
    EXPECT_GE(memory.without_reuse, 12 * 1024) << device;
    EXPECT_LT(memory.arena, memory.without_reuse) << device;
  }
}

TEST(report, fallbacks_carry_the_reasons_of_those_that_refused) {
  Graph graph;
  Value x = graph.input("x", {DType::f64, {4, 4}}), k = graph.input("k", {DType::f64, {3, 3, 1, 2}});
  graph.output("product", dot_general(x, x, {{}, {}, {1}, {0}}));
  graph.output("sum", reduce(x, "add", {1}));
  graph.output("image", convolution(graph.input("i", {DType::f64, {1, 5, 5, 1}}), k, {{1, 1}, {0, 0}, {0, 0}}));
  graph.output("sorted", sort({graph.input("t", {DType::f32, {2, 3}})}, 1)[0]);
  graph.output("gamma", graph.add(Op::lgamma, {graph.input("g", {DType::f32, {9}})})[0]);
  CompileReport report = compile(graph, "cpu").report;
  std::map<std::string, std::string> reasons;
  for (const StepReport& step : report.steps) {
    EXPECT_TRUE(step.fallback) << step.kernel;
    for (const auto& one : step.refused) reasons[step.ops[0]] += one.kernel + ": " + one.reason + "; ";
  }
  EXPECT_EQ(report.steps.size(), 5u);
  EXPECT_EQ(reasons["dot_general"], "matmul: the right side is not known before the run; batched matmul: not of f32; ");
  EXPECT_EQ(reasons["reduce"], "reduce: not of f32; ");
  EXPECT_EQ(reasons["convolution"], "convolution: not of f32; ");
  EXPECT_EQ(reasons["lgamma"], "loop: no vector code for this op and dtype; ");
  EXPECT_FALSE(reasons.contains("sort"));
}

TEST(report, a_timed_run_computes_the_same_and_tells_a_time_for_each_step) {
  for (const char* device : {"cpu", "reference"}) {
    auto [report, program] = compile(net(), device);
    HostBuffer x(program->input_types()[0]), plain(program->output_types()[0]), timed(program->output_types()[0]);
    Tensor ramp = RandomGraph::ramp({2, 16});
    std::copy(ramp.bytes().begin(), ramp.bytes().end(), x.host().begin());
    Buffer *in[] = {&x}, *one[] = {&plain}, *other[] = {&timed};
    std::vector<double> seconds(report.steps.size());
    program->run(in, one);
    for (int i = 0; i < 50; ++i) program->run_timed(in, other, seconds);
    EXPECT_EQ(floats(plain.tensor()), floats(timed.tensor()));
    for (size_t i = 0; i < seconds.size(); ++i) EXPECT_GT(seconds[i], 0) << device << " " << report.steps[i].kernel;
    // A loop takes at least as long as what is in it.
    for (size_t i = 0; i < seconds.size(); ++i) {
      double inside = 0;
      for (size_t k = i + 1; k < seconds.size() && report.steps[k].depth > report.steps[i].depth; ++k) inside += seconds[k];
      EXPECT_GE(seconds[i], inside);
    }
    EXPECT_TRUE(program->tells_times());
  }
  EXPECT_FALSE(compile(net(), "null").program->tells_times());
}

TEST(speed, is_measured_and_looked_up_by_size) {
  for (const char* device : {"cpu", "reference"}) {
    auto speed = open_device(device)->measure(1);
    ASSERT_TRUE(speed);
    EXPECT_GT(speed->flops_per_second, 1e8);
    ASSERT_GE(speed->bandwidth.size(), 2u);
    for (size_t i = 0; i < speed->bandwidth.size(); ++i) {
      EXPECT_GT(speed->bandwidth[i].bytes_per_second, 1e8);
      EXPECT_GT(speed->bandwidth[i].bytes, i == 0 ? 0 : speed->bandwidth[i - 1].bytes);
    }
  }
  EXPECT_FALSE(open_device("null")->measure(1));
  Speed made{1, 1e9, {{100, 8}, {10000, 2}}};
  EXPECT_EQ(made.bytes_per_second(0), 8);
  EXPECT_EQ(made.bytes_per_second(100), 8);
  EXPECT_NEAR(made.bytes_per_second(1000), 5, 1e-9);
  EXPECT_EQ(made.bytes_per_second(10000), 2);
  EXPECT_EQ(made.bytes_per_second(1 << 30), 2);
}

}  // namespace
}  // namespace tutti
