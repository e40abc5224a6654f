#include "tutti/run/explain.h"

#include <algorithm>
#include <random>

#include "tutti/base/stopwatch.h"
#include "tutti/run/made_up.h"

namespace tutti {

namespace {

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What reading the clock takes: it is part of every time that is measured.
double clock_seconds() {
  std::vector<double> times(1000);
  for (double& time : times) time = Stopwatch().seconds();
  return median(std::move(times));
}

// Runs with and without times of steps in turn, so that both see the machine alike. A run that takes longer than all of them should is
// enough alone.
void measure(Predictor& predictor, Explanation& out) {
  constexpr double enough = 0.7;  // seconds
  constexpr size_t most = 2000;   // runs
  std::vector<std::vector<double>> times(out.steps.size());
  std::vector<double> whole;
  auto run_timed = [&] {
    std::vector<double> seconds(out.steps.size());
    const Stopwatch watch;
    predictor.run_timed(seconds);
    predictor.synchronize();
    const double all = watch.seconds();
    for (size_t i = 0; i < seconds.size(); ++i) times[i].push_back(seconds[i]);
    return all;
  };
  const double first = run_timed();
  if (first > enough) {
    whole.push_back(first);
  } else {
    for (auto& cold : times) cold.clear();
    for (const Stopwatch spent; whole.empty() || (spent.seconds() < enough && whole.size() < most);) {
      run_timed();
      const Stopwatch watch;
      predictor.run();
      predictor.synchronize();
      whole.push_back(watch.seconds());
    }
  }

  const double clock = clock_seconds();
  out.runs = static_cast<int64_t>(whole.size());
  out.whole = std::max(0.0, median(std::move(whole)) - clock);
  if (!predictor.tells_times()) return;
  out.sum = 0;
  for (size_t i = 0; i < out.steps.size(); ++i) {
    ExplainedStep& step = out.steps[i];
    int64_t readings = step.runs;  // of the clock, within this step's time: its own and those of its body
    for (size_t inner = i + 1; inner < out.steps.size() && out.steps[inner].depth > step.depth; ++inner) readings += out.steps[inner].runs;
    step.seconds = std::max(0.0, median(std::move(times[i])) - clock * static_cast<double>(readings));
    if (step.depth == 0) *out.sum += *step.seconds;
  }
}

// What an iteration of the loop around a step reads and writes.
int64_t bytes_of_body(const std::vector<ExplainedStep>& steps, size_t inside) {
  const int depth = steps[inside].depth;
  size_t first = inside;
  while (steps[first - 1].depth >= depth) --first;  // there is the loop's own step before
  int64_t bytes = 0;
  for (size_t k = first; k < steps.size() && steps[k].depth >= depth; ++k)
    if (steps[k].depth == depth) bytes = saturating_add(bytes, saturating_add(steps[k].weight_bytes, steps[k].value_bytes));
  return bytes;
}

// The roofs. Values were written just before, so they are as near as they are few; weights were last read a run ago, or an iteration of the
// innermost loop, and everything that is read meanwhile lies between.
void predict(Explanation& out) {
  std::vector<ExplainedStep>& steps = out.steps;
  for (size_t i = steps.size(); i-- > 0;) {  // bodies before their loops
    ExplainedStep& step = steps[i];
    step.predicted = 0;
    if (i + 1 < steps.size() && steps[i + 1].depth > step.depth) {  // a loop takes what its body takes, branches share the threads
      double by_memory = 0;
      for (size_t k = i + 1; k < steps.size() && steps[k].depth > step.depth; ++k) {
        if (steps[k].depth != step.depth + 1) continue;
        *step.predicted += *steps[k].predicted;
        if (steps[k].memory_bound) by_memory += *steps[k].predicted;
      }
      step.memory_bound = 2 * by_memory > *step.predicted;
      *step.predicted /= step.threads;
      continue;
    }
    const Speed& speed = step.threads > 1 ? out.speeds.back() : out.speeds.front();
    const int64_t between = step.depth == 0 ? out.memory.weights + out.memory.constants + out.memory.arena : bytes_of_body(steps, i);
    const double arithmetic = static_cast<double>(step.flops) / speed.flops_per_second;
    const double weights = static_cast<double>(step.weight_bytes) / speed.bytes_per_second(between);
    const double values = static_cast<double>(step.value_bytes) / speed.bytes_per_second(std::min(between, step.value_bytes));
    step.memory_bound = weights + values > arithmetic;
    step.predicted = static_cast<double>(step.runs) * std::max(arithmetic, weights + values);
  }
}

}  // namespace

std::vector<Shape> shapes_with(const keras::AnyModel& model, int64_t batch, int64_t extent) {
  std::vector<Shape> out;
  for (const auto& input : model.inputs()) {
    Ints extents = input.shape;
    std::replace(extents.begin(), extents.end(), int64_t{-1}, extent);
    extents[0] = batch;
    out.emplace_back(extents);
  }
  return out;
}

Explanation explain(const keras::AnyModel& model, const CompileOptions& options) {
  auto device = open_device(options.device);
  CompileSettings settings{options.threads, options.cache, nullptr, options.precision};
  std::vector<ArrangedGroup> groups;
  const Graph graph = lower_for(model, options, device, &groups);
  Explanation out = explain(graph, device, std::move(settings), options.batch);
  out.groups = std::move(groups);
  return out;
}

Explanation explain(const Graph& graph, const std::shared_ptr<Device>& device, CompileSettings settings, int64_t batch) {
  CompileReport report;
  settings.report = &report;
  Explanation out;
  auto program = compile_batch(*device, graph, settings, batch);
  out.device = device->name();
  out.replicas = std::max<size_t>(1, settings.replicas.size());
  out.inputs = program->input_types();
  out.inputs.resize(graph.parameters(Graph::Role::input).size());  // of one replica
  out.stats = program->stats();
  out.passes = std::move(report.passes);
  out.memory = report.memory;
  for (StepReport& step : report.steps) {
    out.threads = std::max(out.threads, step.threads);
    if (step.depth == 0) {
      out.flops = saturating_add(out.flops, step.flops);
      out.bytes = saturating_add(out.bytes, step.all_bytes());
    }
    out.steps.push_back({std::move(step), {}, {}, false});
  }
  out.fusions = report.fusions;
  out.library_calls = report.library_calls;
  if (report.published) {
    out.speeds.push_back(*report.published);
    predict(out);
    out.projected = 0;
    for (const ExplainedStep& step : out.steps)
      if (step.depth == 0) *out.projected += *step.predicted;
  }
  if (!program->computes() || out.replicas > 1) return out;
  Predictor predictor(device, std::move(program));
  set_made_up_inputs(predictor);
  measure(predictor, out);
  if (!predictor.tells_times()) return out;
  if (auto one = device->measure(1)) out.speeds.push_back(std::move(*one));
  if (out.speeds.empty()) return out;
  if (out.threads > 1) out.speeds.push_back(*device->measure(out.threads));
  predict(out);
  return out;
}

}  // namespace tutti
