#include "tutti/run/predictor.h"

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti {

namespace {
constexpr size_t max_cached_predictors = 8;

// Rows [begin, begin + count) of a tensor, as bytes.
std::span<const std::byte> rows(const Tensor& tensor, int64_t begin, int64_t count) {
  int64_t samples = tensor.shape()[0], row = samples == 0 ? 0 : tensor.type().bytes() / samples;
  return tensor.bytes().subspan(static_cast<size_t>(begin * row), static_cast<size_t>(count * row));
}

std::span<std::byte> rows(Tensor& tensor, int64_t begin, int64_t count) {
  auto found = rows(std::as_const(tensor), begin, count);
  return {const_cast<std::byte*>(found.data()), found.size()};
}
}  // namespace

Predictor::Compiled Predictor::compile(const keras::Model& model, const CompileOptions& options) {
  auto device = open_device(options.device);
  CompileSettings settings{options.threads, options.cache};
  auto program = device->compile(model.lower({options.batch, options.input_shapes, nullptr}), settings);
  return {std::move(device), std::move(program), std::move(settings.cache)};
}

Predictor::Predictor(const keras::Model& model, const CompileOptions& options) : Predictor(compile(model, options)) {}

Predictor Predictor::context() const { return Predictor(Compiled{device_, program_->context(), cache_}); }

Predictor::Predictor(Compiled compiled)
    : device_(std::move(compiled.device)), cache_(std::move(compiled.cache)), program_(std::move(compiled.program)) {
  for (const Type& type : program_->input_types()) input_pointers_.push_back(inputs_.emplace_back(device_->allocate(type)).get());
  for (const Type& type : program_->output_types()) output_pointers_.push_back(outputs_.emplace_back(device_->allocate(type)).get());
}

void Predictor::run(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) {
  if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size())
    fail<InvalidArgument>("predict", "takes {} inputs and {} outputs; got {} and {}", inputs_.size(), outputs_.size(), inputs.size(),
                          outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() != static_cast<size_t>(input_types()[i].bytes()))
      fail<InvalidArgument>("predict", "input {} is {}, {} bytes; got {}", i, to_string(input_types()[i]), input_types()[i].bytes(),
                            inputs[i].size());
    device_->to_device(inputs[i], *inputs_[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].size() != static_cast<size_t>(output_types()[i].bytes()))
      fail<InvalidArgument>("predict", "output {} is {}, {} bytes; got {}", i, to_string(output_types()[i]), output_types()[i].bytes(),
                            outputs[i].size());
  program_->run(input_pointers_, output_pointers_);
  for (size_t i = 0; i < outputs.size(); ++i) device_->to_host(*outputs_[i], outputs[i]);
}

BatchPredictor::BatchPredictor(std::shared_ptr<const keras::Model> model, std::string device, int64_t batch, int threads)
    : model_(std::move(model)), device_(std::move(device)), batch_(batch), threads_(threads) {
  if (batch_ < 1) fail<InvalidArgument>("predict", "a batch has at least one sample; got {}", batch_);
}

Predictor& BatchPredictor::compiled(const std::vector<Shape>& shapes) {
  auto found = std::find_if(cache_.begin(), cache_.end(), [&](const Entry& e) { return e.shapes == shapes; });
  if (found != cache_.end()) {
    cache_.splice(cache_.begin(), cache_, found);
    return *cache_.front().predictor;
  }
  int64_t batch = shapes.empty() ? 1 : shapes[0][0];
  cache_.push_front({shapes, std::make_unique<Predictor>(*model_, CompileOptions{batch, device_, shapes, threads_, weights_})});
  weights_ = cache_.front().predictor->cache();
  if (cache_.size() > max_cached_predictors) cache_.pop_back();
  return *cache_.front().predictor;
}

std::vector<Tensor> BatchPredictor::predict(const std::vector<Tensor>& given) {
  const auto& specs = model_->inputs();
  if (given.size() != specs.size()) fail<InvalidArgument>("predict", "the model takes {} inputs; got {}", specs.size(), given.size());
  std::vector<Tensor> inputs;
  std::vector<Shape> shapes;
  int64_t samples = -1;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].shape().rank() < 1) fail<InvalidArgument>("predict", "input '{}' has no axis of samples", specs[i].name);
    if (samples >= 0 && given[i].shape()[0] != samples)
      fail<InvalidArgument>("predict", "inputs have as many samples; '{}' has {}, '{}' {}", specs[0].name, samples, specs[i].name,
                            given[i].shape()[0]);
    samples = given[i].shape()[0];
    inputs.push_back(given[i].dtype() == specs[i].dtype ? given[i] : given[i].converted(specs[i].dtype));
    shapes.push_back(given[i].shape());
  }
  auto with_batch = [&](int64_t count) {
    std::vector<Shape> out;
    for (const Shape& shape : shapes) {
      Ints extents = shape.extents();
      extents[0] = count;
      out.emplace_back(extents);
    }
    return out;
  };
  std::vector<Tensor> outputs;
  for (int64_t begin = 0; begin == 0 || begin < samples; begin += batch_) {
    // No samples at all: one would do to know what the outputs look like.
    int64_t count = samples == 0 ? 1 : std::min(batch_, samples - begin);
    Predictor& predictor = compiled(with_batch(count));
    if (outputs.empty())
      for (size_t i = 0; i < predictor.output_types().size(); ++i) {
        Type type = predictor.output_types()[i];
        Ints extents = type.shape.extents();
        if (count == samples) {  // one batch: whatever the model makes of it
          outputs.emplace_back(type);
          continue;
        }
        if (extents.empty() || extents[0] != count)
          fail<Unsupported>("predict", "output '{}' is {}, not one row a sample; hint: predict all samples in one batch",
                            model_->output_names()[i], to_string(type));
        extents[0] = samples;
        outputs.emplace_back(type.dtype, extents);
      }
    if (samples == 0) break;
    std::vector<std::span<const std::byte>> in;
    std::vector<std::span<std::byte>> out;
    for (const Tensor& tensor : inputs) in.push_back(rows(tensor, begin, count));
    for (Tensor& tensor : outputs) out.push_back(count == samples ? tensor.bytes() : rows(tensor, begin, count));
    predictor.run(in, out);
  }
  return outputs;
}

}  // namespace tutti
