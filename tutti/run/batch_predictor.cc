#include "tutti/run/batch_predictor.h"

#include <algorithm>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/saturate.h"
#include "tutti/data/rows.h"
#include "tutti/device/bytes.h"
#include "tutti/graph/sample_axes.h"

namespace tutti {

namespace {

constexpr size_t most_programs = 16, most_exact_programs = 4;

// The first `count` rows from row `begin` on, as bytes.
std::span<const std::byte> rows(const Tensor& tensor, int64_t begin, int64_t count) {
  int64_t samples = tensor.shape()[0], row = samples == 0 ? 0 : tensor.type().bytes() / samples;
  return tensor.bytes().subspan(static_cast<size_t>(begin * row), static_cast<size_t>(count * row));
}

std::span<std::byte> rows(Tensor& tensor, int64_t begin, int64_t count) {
  auto found = rows(std::as_const(tensor), begin, count);
  return {const_cast<std::byte*>(found.data()), found.size()};
}

std::vector<Shape> with_batch(const std::vector<Shape>& shapes, int64_t count) {
  std::vector<Shape> out;
  for (const Shape& shape : shapes) {
    Ints extents = shape.extents();
    extents[0] = count;
    out.emplace_back(extents);
  }
  return out;
}

// From and to where a batch that is filled up stands.
template <class Copies>
void copy(const Copies& list) {
  for (const auto& [from, to] : list) copy_bytes(to.data(), from.data(), static_cast<int64_t>(to.size()));
}

}  // namespace

int64_t size_class(int64_t count) {
  int64_t power = 1;
  while (power < count) power *= 2;
  return power >= 4 && power / 4 * 3 >= count ? power / 4 * 3 : power;
}

void PreparedPrediction::begin(size_t i) {
  Batch& batch = batches_[i];
  copy(batch.before);
  if (batch.predictor->is_asynchronous()) batch.begun = batch.predictor->begin(batch.inputs);
}

void PreparedPrediction::begin() {
  if (!batches_.empty()) begin(0);
}

// While a batch computes, the inputs of the next go over.
void PreparedPrediction::end() {
  for (size_t i = 0; i < batches_.size(); ++i) {
    Batch& batch = batches_[i];
    if (i + 1 < batches_.size()) begin(i + 1);
    if (batch.begun)
      batch.predictor->end(*std::exchange(batch.begun, {}), batch.outputs);
    else
      batch.predictor->run(batch.inputs, batch.outputs);
    copy(batch.after);
  }
}

int64_t PreparedPrediction::flops() const {
  int64_t sum = 0;
  for (const Batch& batch : batches_) sum = saturating_add(sum, batch.predictor->stats().flops);
  return sum;
}

void PreparedPrediction::pad(Batch& batch) {
  const auto zeros = [&](const Type& type) {
    Tensor& tensor = batch.padded.emplace_back(type);
    std::fill(tensor.bytes().begin(), tensor.bytes().end(), std::byte{0});
    return tensor.bytes();
  };
  for (size_t i = 0; i < batch.inputs.size(); ++i) {
    auto place = zeros(batch.predictor->input_types()[i]);
    batch.before.push_back({batch.inputs[i], place.first(batch.inputs[i].size())});
    batch.inputs[i] = place;
  }
  for (size_t i = 0; i < batch.outputs.size(); ++i) {
    auto place = zeros(batch.predictor->output_types()[i]);
    batch.after.push_back({place, batch.outputs[i]});
    batch.outputs[i] = place;
  }
}

BatchPredictor::BatchPredictor(std::shared_ptr<const keras::AnyModel> model, CompileOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  if (batch() < 1) fail<InvalidArgument>("predict", "a batch has at least one sample; got {}", batch());
}

std::shared_ptr<Predictor> BatchPredictor::find(const std::vector<Shape>& shapes) {
  auto found = std::find_if(programs_.begin(), programs_.end(), [&](const Entry& entry) { return entry.shapes == shapes; });
  if (found == programs_.end()) return nullptr;
  programs_.splice(programs_.begin(), programs_, found);
  return programs_.front().predictor;
}

std::shared_ptr<Predictor> BatchPredictor::compile(const std::vector<Shape>& shapes) {
  CompileOptions own = options_;
  own.batch = shapes.empty() ? 1 : shapes[0][0];
  own.input_shapes = shapes;
  programs_.push_front({shapes, std::make_shared<Predictor>(*model_, own)});
  options_.cache = programs_.front().predictor->cache();  // weights are prepared once
  ++compilations_;
  if (programs_.size() > most_programs) programs_.pop_back();
  return programs_.front().predictor;
}

bool BatchPredictor::may_be_padded(const std::vector<Shape>& shapes) {
  if (!independent_) independent_ = tutti::samples_are_independent(model_->lower({2, with_batch(shapes, 2), nullptr}), 2);
  return *independent_;
}

bool BatchPredictor::samples_are_independent(const std::vector<Type>& rows) {
  std::vector<Shape> shapes;
  for (const Type& row : rows) shapes.push_back(with_rows(1, row.shape));
  return may_be_padded(shapes);
}

std::shared_ptr<Predictor> BatchPredictor::program_for(int64_t count, const std::vector<Shape>& shapes) {
  const auto exact = with_batch(shapes, count);
  if (auto known = find(exact)) return known;
  if (count == batch() || programs_.size() < most_exact_programs || !may_be_padded(shapes)) return compile(exact);
  const auto larger = with_batch(shapes, std::min(batch(), size_class(count)));
  auto known = find(larger);
  return known ? known : compile(larger);
}

PreparedPrediction BatchPredictor::prepare(const std::vector<Tensor>& given) {
  const auto& specs = model_->inputs();
  if (given.size() != specs.size()) fail<InvalidArgument>("predict", "the model takes {} inputs; got {}", specs.size(), given.size());
  PreparedPrediction prepared;
  std::vector<Shape> shapes;
  int64_t samples = -1;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].shape().rank() < 1) fail<InvalidArgument>("predict", "input '{}' has no axis of samples", specs[i].name);
    if (samples >= 0 && given[i].shape()[0] != samples)
      fail<InvalidArgument>("predict", "inputs have as many samples; '{}' has {}, '{}' {}", specs[0].name, samples, specs[i].name,
                            given[i].shape()[0]);
    samples = given[i].shape()[0];
    prepared.inputs_.push_back(given[i].dtype() == specs[i].dtype ? given[i] : given[i].converted(specs[i].dtype));
    shapes.push_back(given[i].shape());
  }
  for (int64_t begin = 0; begin == 0 || begin < samples; begin += batch()) {
    // No samples at all: one would do to know what the outputs look like.
    const int64_t count = samples == 0 ? 1 : std::min(batch(), samples - begin);
    PreparedPrediction::Batch batch{program_for(count, shapes), {}, {}, {}, {}, {}, {}};
    const auto& types = batch.predictor->output_types();
    const int64_t computed = shapes.empty() ? count : batch.predictor->input_types()[0].shape[0];
    for (size_t i = prepared.outputs_.size(); i < types.size(); ++i) {
      Ints extents = types[i].shape.extents();
      if (count == samples && computed == count) {  // one batch: whatever the model makes of it
        prepared.outputs_.emplace_back(types[i]);
        continue;
      }
      if (extents.empty() || extents[0] != computed)
        fail<Unsupported>("predict", "output '{}' is {}, not one row a sample; hint: predict all samples in one batch",
                          model_->output_names()[i], to_string(types[i]));
      extents[0] = samples;
      prepared.outputs_.emplace_back(types[i].dtype, extents);
    }
    if (samples == 0) break;
    for (const Tensor& tensor : prepared.inputs_) batch.inputs.push_back(rows(tensor, begin, count));
    for (Tensor& tensor : prepared.outputs_) batch.outputs.push_back(count == samples ? tensor.bytes() : rows(tensor, begin, count));
    if (computed != count) PreparedPrediction::pad(batch);
    prepared.batches_.push_back(std::move(batch));
  }
  return prepared;
}

std::vector<Tensor> BatchPredictor::predict(const std::vector<Tensor>& inputs) {
  PreparedPrediction prepared = prepare(inputs);
  prepared.run();
  return std::move(prepared.outputs_);
}

}  // namespace tutti
