#include "tutti/run/batch_predictor.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/memory.h"
#include "tutti/base/saturate.h"
#include "tutti/data/rows.h"
#include "tutti/device/bytes.h"
#include "tutti/device/host.h"
#include "tutti/graph/cost.h"
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

std::vector<Shape> all_with_rows(int64_t count, const std::vector<Type>& rows) {
  std::vector<Shape> out;
  for (const Type& row : rows) out.push_back(with_rows(count, row.shape));
  return out;
}

// Without copies where the bytes lie as the program wants them.
void compute(Predictor& predictor, std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) {
  if (predictor.computes_in_host_memory() && std::all_of(inputs.begin(), inputs.end(), is_aligned) &&
      std::all_of(outputs.begin(), outputs.end(), is_aligned))
    predictor.run_in_place(inputs, outputs);
  else
    predictor.run(inputs, outputs);
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
  if (device_->is_asynchronous()) batch.begun = batch.predictors->front().begin(batch.inputs);
}

void PreparedPrediction::begin() {
  if (!batches_.empty() && !is_side_by_side()) begin(0);
}

// While a batch computes, the inputs of the next go over.
void PreparedPrediction::end() {
  if (is_side_by_side()) return end_side_by_side();
  for (size_t i = 0; i < batches_.size(); ++i) {
    Batch& batch = batches_[i];
    if (i + 1 < batches_.size()) begin(i + 1);
    Predictor& predictor = batch.predictors->front();
    if (batch.begun)
      predictor.end(*std::exchange(batch.begun, {}), batch.outputs);
    else
      tutti::compute(predictor, batch.inputs, batch.outputs);
    copy(batch.after);
  }
}

void PreparedPrediction::end_side_by_side() {
  std::mutex mutex;
  std::exception_ptr failure;
  std::atomic<size_t> next = 0;  // one after another, whoever is free
  side_by_side([&](int thread) {
    try {
      for (size_t i; (i = next++) < batches_.size();) {
        copy(batches_[i].before);
        tutti::compute((*batches_[i].predictors)[static_cast<size_t>(thread)], batches_[i].inputs, batches_[i].outputs);
        copy(batches_[i].after);
      }
    } catch (...) {
      next = batches_.size();
      std::scoped_lock lock(mutex);
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void PreparedPrediction::side_by_side(const std::function<void(int thread)>& body) const {
  device_->side_by_side(threads_, threads_, [&](int64_t, int thread) { body(thread); });
}

std::vector<std::span<std::byte>> PreparedPrediction::inputs(size_t batch, int thread) const {
  Predictor& predictor = (*batches_[batch].predictors)[static_cast<size_t>(thread)];
  std::vector<std::span<std::byte>> out;
  for (size_t i = 0; i < predictor.input_types().size(); ++i) out.push_back(predictor.input(i));
  return out;
}

void PreparedPrediction::compute(size_t batch, int thread) const {
  const Batch& one = batches_[batch];
  const auto given = inputs(batch, thread);
  const std::vector<std::span<const std::byte>> inputs(given.begin(), given.end());
  tutti::compute((*one.predictors)[static_cast<size_t>(thread)], inputs, one.outputs);
  copy(one.after);
}

void PreparedPrediction::pad(Batch& batch) {
  const Predictor& predictor = batch.predictors->front();
  const auto& types = predictor.input_types();
  if (types.empty() || types[0].shape[0] == batch.count) return;
  const auto zeros = [&](const Type& type) {
    Tensor& tensor = batch.padded.emplace_back(type);
    std::fill(tensor.bytes().begin(), tensor.bytes().end(), std::byte{0});
    return tensor.bytes();
  };
  for (size_t i = 0; i < batch.inputs.size(); ++i) {
    auto place = zeros(types[i]);
    batch.before.push_back({batch.inputs[i], place.first(batch.inputs[i].size())});
    batch.inputs[i] = place;
  }
  for (size_t i = 0; i < batch.outputs.size(); ++i) {
    auto place = zeros(predictor.output_types()[i]);
    batch.after.push_back({place, batch.outputs[i]});
    batch.outputs[i] = place;
  }
}

BatchPredictor::BatchPredictor(std::shared_ptr<const keras::AnyModel> model, CompileOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  if (batch() < 1) fail<InvalidArgument>("predict", "a batch has at least one sample; got {}", batch());
}

std::shared_ptr<BatchPredictor::Predictors> BatchPredictor::find(const std::vector<Shape>& shapes, int side_by_side) {
  auto found = std::find_if(programs_.begin(), programs_.end(),
                            [&](const Entry& entry) { return entry.shapes == shapes && entry.side_by_side == side_by_side; });
  if (found == programs_.end()) return nullptr;
  programs_.splice(programs_.begin(), programs_, found);
  return programs_.front().predictors;
}

std::shared_ptr<BatchPredictor::Predictors> BatchPredictor::compile(const std::vector<Shape>& shapes, int side_by_side) {
  CompileOptions own = options_;
  own.batch = shapes.empty() ? 1 : shapes[0][0];
  own.input_shapes = shapes;
  if (side_by_side > 1) own.threads = 1;
  auto predictors = std::make_shared<Predictors>();
  predictors->emplace_back(*model_, own);
  for (int i = 1; i < side_by_side; ++i) predictors->push_back(predictors->front().context());
  options_.cache = predictors->front().cache();  // weights are prepared once
  programs_.push_front({shapes, side_by_side, std::move(predictors)});
  ++compilations_;
  if (programs_.size() > most_programs) programs_.pop_back();
  return programs_.front().predictors;
}

const BatchPredictor::Nature& BatchPredictor::nature(const std::vector<Shape>& shapes) {
  std::vector<Shape> two = with_batch(shapes, 2);
  if (!nature_ || nature_->shapes != two) {
    const Graph graph = model_->lower({2, two, nullptr});
    int64_t scans = 0, widest = 0;
    for (const Node& node : graph.nodes()) {
      if (node.op == Op::scan) scans = saturating_add(scans, cost(graph, node).flops);
      if (node.operands.empty()) continue;
      for (const ValueId result : node.results) widest = std::max(widest, graph.type(result).bytes());
    }
    nature_ = {std::move(two), tutti::samples_are_independent(graph, 2), cost(graph).flops / 2, scans / 2, weight_bytes(graph), widest / 2};
  }
  return *nature_;
}

bool BatchPredictor::samples_are_independent(const std::vector<Type>& rows) { return nature(all_with_rows(1, rows)).independent; }

int64_t BatchPredictor::flops_a_sample(const std::vector<Type>& rows) { return nature(all_with_rows(1, rows)).flops; }

int BatchPredictor::threads() const { return options_.threads == 0 ? thread_limit() : options_.threads; }

int64_t BatchPredictor::part_for(int64_t samples, int64_t largest, const std::vector<Shape>& shapes) {
  constexpr int64_t least = 8;                    // samples of a thread, which reads all weights in each step
  constexpr int64_t most_weight_bytes = 1 << 20;  // that stay in each one's second-level cache
  constexpr int64_t near_bytes = 1 << 20;         // of a value, beside others
  const int64_t threads = this->threads();
  if (samples < 2 || samples > largest || shapes.empty() || open_device(options_.device)->is_asynchronous()) return largest;
  const Nature& own = nature(shapes);
  if (!own.independent) return largest;
  const auto parts = [](int64_t all, int64_t each) { return (all + each - 1) / each; };
  if (threads > 1 && samples >= least * threads && own.weight_bytes <= most_weight_bytes && own.scan_flops > own.flops / 2)
    return parts(samples, threads);
  if (saturating_multiply(own.widest_bytes, samples) <= near_bytes) return largest;
  const int64_t near = std::max<int64_t>(1, near_bytes / own.widest_bytes), rounds = parts(samples, near * threads);
  const int64_t part = parts(samples, rounds * threads);
  const int64_t longest = parts(parts(samples, part), threads) * part;  // samples of the thread that has most
  return 8 * longest * threads <= 9 * samples ? part : largest;
}

// Each thread reads all weights for each batch: worth it where they are little beside the arithmetic.
bool BatchPredictor::is_worth_apart(int64_t samples, const std::vector<Shape>& shapes) {
  constexpr int64_t flops_a_byte = 16;             // a matrix's, with 32 samples
  constexpr int64_t most_memory_bytes = 32 << 20;  // of each thread
  constexpr int64_t most_flops = 4'000'000'000;    // of a batch so large that nobody waits long for another
  if (!nature(shapes).independent) return false;
  const int64_t flops = saturating_multiply(nature_->flops, samples);
  if (flops > most_flops || flops < saturating_multiply(flops_a_byte, nature_->weight_bytes)) return false;
  if (saturating_multiply(nature_->widest_bytes, samples) > most_memory_bytes) return false;  // without compiling it
  Predictor& one = program_for(samples, samples, shapes, threads())->front();
  return one.computes_in_host_memory() && one.stats().peak_memory_bytes <= most_memory_bytes;
}

std::shared_ptr<BatchPredictor::Predictors> BatchPredictor::program_for(int64_t count, int64_t largest, const std::vector<Shape>& shapes,
                                                                        int side_by_side) {
  const auto exact = with_batch(shapes, count);
  if (auto known = find(exact, side_by_side)) return known;
  if (count == largest || programs_.size() < most_exact_programs || !nature(shapes).independent) return compile(exact, side_by_side);
  const auto larger = with_batch(shapes, std::min(largest, size_class(count)));
  auto known = find(larger, side_by_side);
  return known ? known : compile(larger, side_by_side);
}

PreparedPrediction BatchPredictor::cut(int64_t samples, int64_t largest, const std::vector<Shape>& shapes) {
  PreparedPrediction prepared;
  prepared.device_ = open_device(options_.device);
  const int64_t part = part_for(samples, largest, shapes);
  if ((part < largest || (samples >= 2 * largest && threads() > 1)) && is_worth_apart(part, shapes)) {
    prepared.threads_ = threads();
    largest = part;
  }
  for (int64_t begin = 0; begin == 0 || begin < samples; begin += largest) {
    // No samples at all: one would do to know what the outputs look like.
    const int64_t count = samples == 0 ? 1 : std::min(largest, samples - begin);
    PreparedPrediction::Batch batch{program_for(count, largest, shapes, prepared.threads_), begin, count, {}, {}, {}, {}, {}, {}};
    const auto& types = batch.predictors->front().output_types();
    const int64_t computed = shapes.empty() ? count : batch.predictors->front().input_types()[0].shape[0];
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
    for (Tensor& tensor : prepared.outputs_) batch.outputs.push_back(count == samples ? tensor.bytes() : rows(tensor, begin, count));
    prepared.batches_.push_back(std::move(batch));
  }
  return prepared;
}

PreparedPrediction BatchPredictor::prepare(const std::vector<Tensor>& given, std::optional<int64_t> together) {
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
  PreparedPrediction prepared = cut(samples, std::min(batch(), together.value_or(batch())), shapes);
  prepared.inputs_ = std::move(inputs);
  for (auto& batch : prepared.batches_) {
    for (const Tensor& tensor : prepared.inputs_) batch.inputs.push_back(rows(tensor, batch.first, batch.count));
    PreparedPrediction::pad(batch);
  }
  return prepared;
}

PreparedPrediction BatchPredictor::prepare(const std::vector<Type>& one, int64_t samples, int64_t together) {
  PreparedPrediction prepared = cut(samples, std::min(batch(), together), all_with_rows(samples, one));
  for (auto& batch : prepared.batches_) PreparedPrediction::pad(batch);
  return prepared;
}

std::vector<Tensor> BatchPredictor::predict(const std::vector<Tensor>& inputs) {
  PreparedPrediction prepared = prepare(inputs);
  prepared.run();
  return std::move(prepared.outputs_);
}

}  // namespace tutti
