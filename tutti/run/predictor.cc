#include "tutti/run/predictor.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/device/host.h"

namespace tutti {

namespace {

// Every node is named after the innermost layer that made it; nested ones follow their parents.
void name_layers(Graph& graph, const std::vector<keras::LayerTrace>& trace) {
  std::vector<std::string> names;
  for (const keras::LayerTrace& layer : trace) {
    graph.set_origin(layer.first_node, std::min(layer.end_node, graph.nodes().size()), static_cast<int32_t>(names.size()), true);
    names.push_back(layer.name);
  }
  graph.set_origins(std::make_shared<const std::vector<std::string>>(std::move(names)));
}

}  // namespace

Graph lower_for(const keras::AnyModel& model, const CompileOptions& options, const std::shared_ptr<Device>& device,
                std::vector<ArrangedGroup>* groups) {
  std::vector<keras::LayerTrace> trace;
  Graph graph = model.lower({options.batch, options.input_shapes, &trace});
  return arrange_for(std::move(graph), trace, options, device, groups);
}

Graph arrange_for(Graph graph, const std::vector<keras::LayerTrace>& trace, const CompileOptions& options,
                  const std::shared_ptr<Device>& device, std::vector<ArrangedGroup>* groups) {
  name_layers(graph, trace);
  return arrange(std::move(graph), trace, device, {options.arrangement, options.threads, options.precision}, groups);
}

std::unique_ptr<Program> compile_batch(Device& device, const Graph& graph, CompileSettings& settings, int64_t batch) {
  try {
    return device.compile(graph, settings);
  } catch (const TooLarge& e) {
    if (batch == 1) throw;
    // The largest power of two that would fit if all of it grew with the batch.
    int64_t smaller = 1;
    const double fits = static_cast<double>(batch) * static_cast<double>(e.available) / static_cast<double>(e.needed);
    while (2 * smaller < batch && 2 * static_cast<double>(smaller) <= fits) smaller *= 2;
    const std::string_view text = e.what();
    fail<OutOfMemory>(text.substr(1, text.find(']') - 1), "{}; hint: a batch of {} instead of {}", text.substr(text.find("] ") + 2),
                      smaller, batch);
  }
}

namespace {

void check(const CompileOptions& options) {
  if (options.threads < 0) fail<InvalidArgument>("compile", "threads are 0, which is chosen, or more; got {}", options.threads);
  for (const Shape& shape : options.input_shapes)
    if (shape.rank() > 0 && shape[0] != options.batch)
      fail<InvalidArgument>("compile", "the first extent of an input's shape is the batch, {}; got {}", options.batch, to_string(shape));
}

}  // namespace

Predictor::Compiled Predictor::compile(const keras::AnyModel& model, const CompileOptions& options) {
  check(options);
  auto device = open_device(options.device);
  CompileSettings settings{options.threads, options.cache, nullptr, options.precision};
  const Graph graph = lower_for(model, options, device);
  auto program = compile_batch(*device, graph, settings, options.batch);
  return {std::move(device), std::move(program), std::move(settings.cache)};
}

Predictor::Predictor(const keras::AnyModel& model, const CompileOptions& options) : Predictor(compile(model, options)) {}

Predictor Predictor::context() const { return {device_, program().context(), cache_}; }

Predictor::Predictor(std::shared_ptr<Device> device, std::unique_ptr<Program> program, std::shared_ptr<CompileCache> cache)
    : device_(std::move(device)), cache_(std::move(cache)), program_(std::move(program)) {
  for (const Type& type : program_->input_types()) input_pointers_.push_back(inputs_.emplace_back(device_->allocate(type)).get());
  for (const Type& type : program_->output_types()) output_pointers_.push_back(outputs_.emplace_back(device_->allocate(type)).get());
}

Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

void Predictor::check_input(size_t i, std::span<const std::byte> bytes) const {
  const Type& type = input_types().at(i);
  if (bytes.size() != static_cast<size_t>(type.bytes()))
    fail<InvalidArgument>("predict", "input {} is {}, {} bytes; got {}", i, to_string(type), type.bytes(), bytes.size());
}

void Predictor::check_inputs(std::span<const std::span<const std::byte>> inputs) const {
  if (inputs.size() != inputs_.size())
    fail<InvalidArgument>("predict", "takes {} inputs and {} outputs; got {} inputs", inputs_.size(), outputs_.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) check_input(i, inputs[i]);
}

void Predictor::set_input(size_t i, std::span<const std::byte> bytes) {
  check_input(i, bytes);
  device_->to_device(bytes, *inputs_[i]);
}

void Predictor::set_inputs(std::span<const std::span<const std::byte>> inputs) {
  check_inputs(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) device_->to_device(inputs[i], *inputs_[i]);
}

void Predictor::check_outputs(std::span<const std::span<std::byte>> outputs) const {
  if (outputs.size() != outputs_.size())
    fail<InvalidArgument>("predict", "takes {} inputs and {} outputs; got {} outputs", inputs_.size(), outputs_.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].size() != static_cast<size_t>(output_types()[i].bytes()))
      fail<InvalidArgument>("predict", "output {} is {}, {} bytes; got {}", i, to_string(output_types()[i]), output_types()[i].bytes(),
                            outputs[i].size());
}

void Predictor::run(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) {
  program();  // or it was moved from
  check_outputs(outputs);
  set_inputs(inputs);
  run();
  for (size_t i = 0; i < outputs.size(); ++i) device_->to_host(*outputs_[i], outputs[i]);
}

bool Predictor::computes_in_host_memory() {
  const auto is_host = [](const auto& buffer) { return buffer->host().size() == static_cast<size_t>(buffer->type().bytes()); };
  return std::all_of(inputs_.begin(), inputs_.end(), is_host) && std::all_of(outputs_.begin(), outputs_.end(), is_host);
}

void Predictor::run_in_place(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) {
  check_outputs(outputs);
  check_inputs(inputs);
  if (borrowed_.empty()) {
    const auto add = [&](const Type& type) {
      borrowed_pointers_.push_back(borrowed_.emplace_back(std::make_unique<BorrowedBuffer>(type)).get());
    };
    for (const Type& type : input_types()) add(type);
    for (const Type& type : output_types()) add(type);
  }
  for (size_t i = 0; i < inputs.size(); ++i) borrowed_[i]->point_at(const_cast<std::byte*>(inputs[i].data()));  // a program only reads it
  for (size_t i = 0; i < outputs.size(); ++i) borrowed_[inputs.size() + i]->point_at(outputs[i].data());
  const std::span<Buffer* const> pointers = borrowed_pointers_;
  program_->run(pointers.first(inputs.size()), pointers.subspan(inputs.size()));
}

Predictor::Begun Predictor::begin(std::span<const std::span<const std::byte>> inputs) {
  set_inputs(inputs);
  Begun begun;
  if (spare_.empty()) {
    for (const Type& type : output_types()) begun.pointers.push_back(begun.outputs.emplace_back(device_->allocate(type)).get());
  } else {
    begun = std::move(spare_.back());
    spare_.pop_back();
  }
  program_->run(input_pointers_, begun.pointers);
  return begun;
}

void Predictor::end(Begun begun, std::span<const std::span<std::byte>> outputs) {
  check_outputs(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) device_->to_host(*begun.outputs[i], outputs[i]);
  spare_.push_back(std::move(begun));
}

}  // namespace tutti
