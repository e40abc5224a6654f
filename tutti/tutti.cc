#include "tutti/tutti.h"

#include <fmt/format.h>

#include "tutti/run/load_model.h"

namespace tutti {

Model load(const std::string& path) { return Model(load_model(path)); }

Model ensemble(const std::vector<Model>& members, const EnsembleOptions& options) {
  std::vector<Ensemble::Member> own;
  for (const Model& member : members) own.push_back({fmt::format("{}_{}", member.shared()->name(), own.size()), member.shared()});
  return Model(std::make_shared<const Ensemble>(std::move(own), options));
}

Model ensemble(const std::vector<Model>& members, Reduce reduce) { return ensemble(members, EnsembleOptions{{Reduction{reduce}}}); }

CompiledModel compile(const Model& model, const CompileOptions& options) { return {model, options}; }

std::vector<Tensor> Model::predict(const std::vector<Tensor>& inputs, int64_t batch, const std::string& device) const {
  return BatchPredictor(shared(), {.batch = batch, .device = device}).predict(inputs);
}

void CompiledModel::check_single_floats() const {
  if (input_types().size() != 1 || output_types().size() != 1 || input_types()[0].dtype != DType::f32 ||
      output_types()[0].dtype != DType::f32)
    fail<InvalidArgument>("predict", "the model has {} inputs and {} outputs, or they are not float32; hint: call it with spans of bytes",
                          input_types().size(), output_types().size());
}

void CompiledModel::operator()(std::span<const float> input, std::span<float> output) {
  check_single_floats();
  std::span<const std::byte> in[] = {std::as_bytes(input)};
  std::span<std::byte> out[] = {std::as_writable_bytes(output)};
  predictor_.run(in, out);
}

namespace {

void check_host_memory(std::span<const std::byte> bytes, const Type& type) {
  if (bytes.size() != static_cast<size_t>(type.bytes()))
    fail<Unsupported>("compile", "the device has memory of its own, there is nothing to point at; hint: predict(input, output)");
}

}  // namespace

std::span<float> CompiledModel::input() {
  check_single_floats();
  auto bytes = predictor_.input(0);
  check_host_memory(bytes, input_types()[0]);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<const float> CompiledModel::output() {
  check_single_floats();
  auto bytes = predictor_.output(0);
  check_host_memory(bytes, output_types()[0]);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

FitReport fit(const std::vector<FitJob>& jobs, const FitOptions& options) {
  const std::atomic<bool> never = false;
  return fit(
      jobs, options, [](const FitResult&) {}, never);
}

}  // namespace tutti
