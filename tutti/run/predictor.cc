#include "tutti/run/predictor.h"

#include "tutti/base/error.h"

namespace tutti {

Graph lower_for(const keras::AnyModel& model, const CompileOptions& options, Device& device, std::shared_ptr<CompileCache>& cache,
                std::vector<ArrangedGroup>* groups) {
  std::vector<keras::LayerTrace> trace;
  Graph graph = model.lower({options.batch, options.input_shapes, &trace});
  return arrange(std::move(graph), trace, device, {options.arrangement, options.threads}, cache, groups);
}

Predictor::Compiled Predictor::compile(const keras::AnyModel& model, const CompileOptions& options) {
  auto device = open_device(options.device);
  CompileSettings settings{options.threads, options.cache};
  const Graph graph = lower_for(model, options, *device, settings.cache);
  auto program = device->compile(graph, settings);
  return {std::move(device), std::move(program), std::move(settings.cache)};
}

Predictor::Predictor(const keras::AnyModel& model, const CompileOptions& options) : Predictor(compile(model, options)) {}

Predictor Predictor::context() const { return {device_, program_->context(), cache_}; }

Predictor::Predictor(std::shared_ptr<Device> device, std::unique_ptr<Program> program, std::shared_ptr<CompileCache> cache)
    : device_(std::move(device)), cache_(std::move(cache)), program_(std::move(program)) {
  for (const Type& type : program_->input_types()) input_pointers_.push_back(inputs_.emplace_back(device_->allocate(type)).get());
  for (const Type& type : program_->output_types()) output_pointers_.push_back(outputs_.emplace_back(device_->allocate(type)).get());
}

void Predictor::set_input(size_t i, std::span<const std::byte> bytes) {
  const Type& type = input_types().at(i);
  if (bytes.size() != static_cast<size_t>(type.bytes()))
    fail<InvalidArgument>("predict", "input {} is {}, {} bytes; got {}", i, to_string(type), type.bytes(), bytes.size());
  device_->to_device(bytes, *inputs_[i]);
}

void Predictor::run(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) {
  if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size())
    fail<InvalidArgument>("predict", "takes {} inputs and {} outputs; got {} and {}", inputs_.size(), outputs_.size(), inputs.size(),
                          outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) set_input(i, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].size() != static_cast<size_t>(output_types()[i].bytes()))
      fail<InvalidArgument>("predict", "output {} is {}, {} bytes; got {}", i, to_string(output_types()[i]), output_types()[i].bytes(),
                            outputs[i].size());
  run();
  for (size_t i = 0; i < outputs.size(); ++i) device_->to_host(*outputs_[i], outputs[i]);
}

}  // namespace tutti
