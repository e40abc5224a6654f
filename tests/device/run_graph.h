// Runs a graph on a device, for tests: tensors in, tensors out.
#pragma once

#include "tutti/device/device.h"

namespace tutti {

class Runner {
 public:
  Runner(const Graph& graph, const std::string& device_name, int threads = 0) : device_(open_device(device_name)) {
    CompileSettings settings{threads};
    program_ = device_->compile(graph, settings);
    for (const auto& type : program_->input_types()) inputs_.push_back(device_->allocate(type));
    for (const auto& type : program_->output_types()) outputs_.push_back(device_->allocate(type));
    for (auto& buffer : inputs_) from_.push_back(buffer.get());
    for (auto& buffer : outputs_) to_.push_back(buffer.get());
  }

  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) device_->to_device(inputs[i].bytes(), *inputs_.at(i));
    run();
    std::vector<Tensor> out;
    for (Buffer* buffer : to_) device_->to_host(*buffer, out.emplace_back(buffer->type()).bytes());
    return out;
  }
  void run() { program_->run(from_, to_); }
  Program& program() { return *program_; }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<Program> program_;
  std::vector<std::unique_ptr<Buffer>> inputs_, outputs_;
  std::vector<Buffer*> from_, to_;
};

inline Tensor f32(Shape shape, const std::vector<float>& values) { return Tensor::of<float>(std::move(shape), values); }
inline std::vector<float> floats(const Tensor& tensor) {
  auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

}  // namespace tutti
