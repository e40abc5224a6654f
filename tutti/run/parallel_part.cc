#include "tutti/run/parallel_part.h"

#include <algorithm>
#include <cstring>

#include "tutti/base/denormals.h"
#include "tutti/base/error.h"
#include "tutti/device/report.h"
#include "tutti/transform/accumulate.h"

namespace tutti {

PartPrograms::PartPrograms(const Trainer& trainer, std::shared_ptr<Device> device, int threads, const PartOptions& options,
                           bool names_kernels)
    : trainer_(trainer), device_(std::move(device)), threads_(threads), options_(options), names_kernels_(names_kernels) {
  SplitStep step = trainer.part_graphs({true, 1}, options_);  // the same but for its batch
  const auto add_states = [&](const Graph& graph) {
    for (const Node* state : graph.parameters(Graph::Role::state))
      if (std::string name = state->attributes.text("name"); std::find(states_.begin(), states_.end(), name) == states_.end())
        states_.push_back(std::move(name));
  };
  add_states(step.part.graph);
  add_states(step.update);
  const auto& outputs = step.part.graph.outputs();
  const size_t count = 1 + step.part.metrics.size();
  for (size_t i = 0; i < count; ++i) result_elements_ += step.part.graph.type(outputs[i].value).shape.elements();
  for (size_t i = count; i < outputs.size(); ++i) sums_.push_back(step.part.graph.type(outputs[i].value));
  update_ = std::move(step.update);
  step.part.graph = {};
  facts_ = std::make_shared<const StepGraph>(std::move(step.part));
}

Graph PartPrograms::graph(StepKind kind, bool adds) const {
  Graph out = std::move(trainer_.part_graphs(kind, options_).part.graph);
  return adds ? accumulate(out, results()) : std::move(out);
}

std::unique_ptr<Program> PartPrograms::with_states(StepKind kind, bool adds, StateBuffers& states) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Program>& program = programs_[{kind, adds}];
  if (program == nullptr) {
    CompileSettings settings;
    settings.threads = threads_;
    CompileReport report;
    if (names_kernels_) settings.report = &report;
    program = device_->compile(graph(kind, adds), settings);
    for (const StepReport& step : report.steps)
      kernels_[{kind, adds}].push_back(
          {fmt::format("{}: {} {}", step.kernel, fmt::join(step.ops, ", "), to_string(step.result)), step.depth});
  }
  return program->context(&states);
}

const std::vector<PartPrograms::Kernel>& PartPrograms::kernels(StepKind kind, bool adds) {
  std::lock_guard lock(mutex_);
  return kernels_[{kind, adds}];
}

Trainer::Part Division::part(size_t small_batch, size_t samples) const {
  const size_t parts = replicas * small_batches, index = small_batch * replicas + rank;
  const size_t begin = samples * index / parts, end = samples * (index + 1) / parts;
  return {begin, end - begin};
}

// One program with its arguments.
struct PartWorker::Step {
  std::unique_ptr<Program> program;
  std::vector<std::unique_ptr<Buffer>> own;  // inputs and results
  std::vector<Buffer*> inputs, outputs;
  size_t filled = 0;  // inputs from the data; the others are sums so far
  const std::vector<PartPrograms::Kernel>* kernels = nullptr;
  std::vector<double> seconds;  // of the kernels
};

PartWorker::PartWorker(std::shared_ptr<PartPrograms> programs, const Division& division, StateBuffers states, Collective* collective,
                       Timeline& timeline, Timeline& kernels, SumBuffers sums)
    : programs_(std::move(programs)),
      division_(division),
      states_(std::move(states)),
      collective_(collective),
      timeline_(timeline),
      kernels_(kernels),
      sums_(std::move(sums)) {
  if (!sums_.empty()) return;
  for (const Type& type : programs_->sums()) sums_.push_back(programs_->device()->allocate(type));
}

PartWorker::~PartWorker() = default;

PartWorker::Step& PartWorker::step_for(StepKind kind, bool adds) {
  std::unique_ptr<Step>& step = steps_[{kind, adds}];
  if (step != nullptr) return *step;
  step = std::make_unique<Step>();
  step->program = programs_->with_states(kind, adds, states_);
  step->program->join(collective_);
  if (kernels_.keeps_spans() && step->program->tells_times()) step->kernels = &programs_->kernels(kind, adds);
  const auto& inputs = step->program->input_types();
  step->filled = inputs.size() - (adds ? sums_.size() : 0);
  const auto own = [&](const Type& type) { return step->own.emplace_back(programs_->device()->allocate(type)).get(); };
  for (size_t i = 0; i < step->filled; ++i) step->inputs.push_back(own(inputs[i]));
  for (size_t i = 0; i < programs_->results(); ++i) step->outputs.push_back(own(step->program->output_types()[i]));
  for (const auto& sum : sums_) {
    if (adds) step->inputs.push_back(sum.get());
    if (kind.training) step->outputs.push_back(sum.get());
  }
  return *step;
}

// Each kernel behind the one before it, and those of a loop from where it begins: how long they take is measured, when they begin is not.
void PartWorker::run(Step& step, const Program::Ready& ready) {
  using Clock = Timeline::Clock;
  step.seconds.assign(step.kernels != nullptr ? step.kernels->size() : 0, 0);
  std::vector<Clock::time_point> next = {Clock::now()};  // by depth
  const FlushDenormals flushing;
  if (ready)
    step.program->run_telling(step.inputs, step.outputs, ready, step.seconds);
  else if (!step.seconds.empty())
    step.program->run_timed(step.inputs, step.outputs, step.seconds);
  else
    step.program->run(step.inputs, step.outputs);
  for (size_t i = 0; i < step.seconds.size(); ++i) {
    const auto& [name, depth] = (*step.kernels)[i];
    next.resize(static_cast<size_t>(depth) + 1, next.back());
    const auto begin = next.back();
    next.back() = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(step.seconds[i]));
    kernels_.add(Phase::compute, begin, next.back(), &name);
    next.push_back(begin);
  }
}

void PartWorker::compute(const Trainer& trainer, const Program::Ready& ready) {
  const auto& batch = trainer.next();
  results_.assign(programs_->results(), {});
  for (size_t small = 0; small < division_.small_batches; ++small) {
    const Trainer::Part part = division_.part(small, batch.rows.size());
    const StepKind kind{batch.kind.training, std::max<int64_t>(static_cast<int64_t>(part.samples), 1)};
    Step& step = step_for(kind, batch.kind.training && small > 0);
    {
      const Timeline::Span span(timeline_, Phase::input);
      for (size_t i = 0; i < step.filled; ++i) trainer.fill_part(i, part, step.inputs[i]->host());
      timeline_.slow_down_input(batch.rows.size(), division_.small_batches);
    }
    const Timeline::Span span(timeline_, Phase::compute);
    const bool last = small + 1 == division_.small_batches;
    Program::Ready tell;
    if (ready && last && batch.kind.training)
      tell = [&ready, first = programs_->results()](size_t output) {
        if (output >= first) ready(output - first);
      };
    run(step, tell);
    timeline_.slow_down_compute();
    for (size_t i = 0; i < results_.size(); ++i) {
      const auto bytes = step.outputs[i]->host();
      results_[i].resize(bytes.size() / sizeof(float));
      if (part.is_idle()) continue;  // computed for nothing
      for (size_t k = 0; k < results_[i].size(); ++k) {
        float value;
        std::memcpy(&value, bytes.data() + k * sizeof value, sizeof value);
        results_[i][k] += static_cast<double>(value);
      }
    }
  }
}

}  // namespace tutti
