#include "tutti/run/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/promote.h"
#include "tutti/transform/append.h"

namespace tutti {

namespace {

using keras::ModelInput;

constexpr size_t most_listed = 8;  // members in a message

Ints without_ones(const Ints& shape) {
  Ints out;
  for (size_t axis = 1; axis < shape.size(); ++axis)
    if (shape[axis] != 1) out.push_back(shape[axis]);
  return out;
}

Ints without_first(const Shape& shape) { return {shape.extents().begin() + 1, shape.extents().end()}; }

// Where both are known; the batch does not count.
bool same_extents(const Ints& a, const Ints& b) {
  if (a.size() != b.size()) return false;
  for (size_t axis = 1; axis < a.size(); ++axis)
    if (a[axis] >= 0 && b[axis] >= 0 && a[axis] != b[axis]) return false;
  return true;
}

// Whether samples of one shape can be given where the other is asked for: equal, or with axes of 1 more or less.
bool goes_with(const ModelInput& a, const ModelInput& b) {
  if (same_extents(a.shape, b.shape)) return true;
  return !has_open_extents(a) && !has_open_extents(b) && without_ones(a.shape) == without_ones(b.shape);
}

// What holds the values of both. Whole numbers and floats together are floats of 32 bits at least.
DType common_type(DType a, DType b) {
  if (a == b) return a;
  if (is_float(a) != is_float(b)) return keras::result_type({DType::f32, is_float(a) ? a : b});
  return keras::result_type({a, b});
}

std::string list_of(const std::vector<std::string>& lines) {
  std::string out;
  for (size_t i = 0; i < lines.size() && i < most_listed; ++i) out += (i ? ", " : "") + lines[i];
  return lines.size() > most_listed ? out + fmt::format(", and {} more", lines.size() - most_listed) : out;
}

std::string inputs_text(const std::vector<ModelInput>& inputs) {
  std::string out;
  for (const auto& input : inputs)
    out += fmt::format("{}{} {}{}", out.empty() ? "" : " and ", input.name, name(input.dtype), to_string(input.shape));
  return out;
}

// Which input of `ours` each of a member's is: by name where the names are the same, else in order, else the only one with that shape.
std::vector<size_t> match(const std::vector<ModelInput>& ours, const std::vector<ModelInput>& theirs) {
  std::vector<size_t> order(theirs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (ours.size() != theirs.size()) return {};
  const auto fits = [&](const std::vector<size_t>& sources) {
    for (size_t i = 0; i < sources.size(); ++i)
      if (sources[i] >= ours.size() || !goes_with(ours[sources[i]], theirs[i])) return false;
    return true;
  };
  const auto find = [&](auto&& is_right) {
    std::vector<size_t> sources;
    for (const auto& input : theirs)
      sources.push_back(static_cast<size_t>(std::find_if(ours.begin(), ours.end(), [&](const auto& one) { return is_right(one, input); }) -
                                            ours.begin()));
    return sources;
  };
  if (auto by_name = find([](const auto& a, const auto& b) { return a.name == b.name; }); fits(by_name)) return by_name;
  if (fits(order)) return order;
  for (const auto& input : theirs)
    if (std::count_if(ours.begin(), ours.end(), [&](const auto& one) { return goes_with(one, input); }) != 1) return {};
  auto by_shape = find(goes_with);
  std::vector<size_t> sorted = by_shape;
  std::sort(sorted.begin(), sorted.end());
  return sorted == order ? by_shape : std::vector<size_t>{};
}

// [samples, members]: whether any of a member's outputs, each [members, samples, ...], is NaN for the sample.
Value nan_members(const std::vector<Value>& outputs, int64_t samples) {
  Value found;
  for (const Value& all : outputs) {
    if (all.rank() < 2 || all.extent(1) != samples)
      fail<Unsupported>("ensemble", "ignoring NaN needs one row a sample; an output is {}", to_string(Shape(without_first(all.shape()))));
    Ints others(static_cast<size_t>(all.rank() - 2));
    std::iota(others.begin(), others.end(), 2);
    const Value own = any(is_nan(all), others);
    found = found ? logical_or(found, own) : own;
  }
  return transpose(found, {1, 0});
}

std::vector<std::string> names_of_predictions(const keras::AnyModel& model) {
  std::vector<std::string> out = model.output_names();
  out.resize(predictions_of(model));
  return out;
}

}  // namespace

size_t predictions_of(const keras::AnyModel& model) {
  const auto* ensemble = dynamic_cast<const Ensemble*>(&model);
  return model.output_names().size() - (ensemble != nullptr && ensemble->options().ignore_nan ? 1 : 0);
}

Ensemble::Ensemble(std::vector<Member> members, EnsembleOptions options, const Ensemble* before)
    : members_(std::move(members)), options_(std::move(options)) {
  if (before != nullptr) inputs_ = before->inputs_, predictions_ = before->predictions_;
  if (members_.empty()) fail<InvalidArgument>("ensemble", "an ensemble has at least one member");
  if (options_.reductions.empty()) fail<InvalidArgument>("ensemble", "an ensemble has at least one reduction");
  const auto& reductions = options_.reductions;
  for (auto one = reductions.begin(); one != reductions.end(); ++one) {
    if (one->kind == Reduce::quantile && !(one->quantile >= 0 && one->quantile <= 1))
      fail<InvalidArgument>("ensemble", "a quantile is a number from 0 to 1; got {}", one->quantile);
    if (std::find(reductions.begin(), one, *one) != one) fail<InvalidArgument>("ensemble", "reduction '{}' is given twice", one->text());
  }
  const std::vector<double>& weights = options_.weights;
  if (!weights.empty()) {
    if (weights.size() != members_.size())
      fail<InvalidArgument>("ensemble", "weights are one a member; got {} for {} members", weights.size(), members_.size());
    if (std::none_of(options_.reductions.begin(), options_.reductions.end(), [](const auto& one) { return one.takes_weights(); }))
      fail<InvalidArgument>("ensemble", "weights are for mean, vote and softvote; none of them is asked for");
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (!std::all_of(weights.begin(), weights.end(), [](double w) { return std::isfinite(w) && w >= 0; }) || !std::isfinite(total) ||
        total == 0)
      fail<InvalidArgument>("ensemble", "weights are finite, not negative and not all zero; got {}", fmt::join(weights, ", "));
  }
  for (const Member& member : members_) {
    for (const std::string& problem : member.model->problems()) problems_.push_back(fmt::format("member '{}': {}", member.name, problem));
    probe_extent_ = std::max(probe_extent_, member.model->probe_extent());
  }
  match_inputs();
  match_outputs();
  for (const std::string& output : predictions_)
    for (const Reduction& reduction : options_.reductions)
      output_names_.push_back(predictions_.size() == 1 ? reduction.name() : output + "." + reduction.name());
  if (options_.ignore_nan) output_names_.emplace_back("nan_members");
}

void Ensemble::match_inputs() {
  std::vector<std::string> lines;  // what is taken, and by whom not
  const bool is_first = inputs_.empty();
  if (is_first)
    inputs_ = members_[0].model->inputs();
  else
    lines.push_back(inputs_text(inputs_));
  for (const Member& member : members_) {
    const auto& theirs = member.model->inputs();
    sources_.push_back(match(inputs_, theirs));
    const bool fits = sources_.back().size() == theirs.size() && inputs_.size() == theirs.size();
    if (lines.empty() || !fits) lines.push_back(fmt::format("'{}' {}", member.name, inputs_text(theirs)));
    if (!fits) continue;
    for (size_t i = 0; i < theirs.size(); ++i) {
      DType& dtype = inputs_[sources_.back()[i]].dtype;  // of all: the widest, so that no member gets less than it would alone
      const DType their = theirs[i].dtype;
      if (is_first && (is_float(their) != is_float(dtype) ? is_float(their) : byte_size(their) > byte_size(dtype))) dtype = their;
      Ints& shape = inputs_[sources_.back()[i]].shape;
      if (shape.size() != theirs[i].shape.size()) continue;
      for (size_t axis = 1; axis < shape.size(); ++axis)  // what one member leaves open another one may fix
        if (shape[axis] < 0) shape[axis] = theirs[i].shape[axis];
    }
  }
  if (lines.size() > 1) fail<InvalidArgument>("ensemble", "members take the same inputs; got {}", list_of(lines));
}

// By name where the names are the same, else in order.
void Ensemble::match_outputs() {
  if (predictions_.empty()) predictions_ = names_of_predictions(*members_[0].model);
  std::vector<std::string> counts;  // the first one's, and others
  for (const Member& member : members_) {
    const std::vector<std::string> theirs = names_of_predictions(*member.model);
    if (counts.empty() || theirs.size() != predictions_.size()) counts.push_back(fmt::format("'{}' {}", member.name, theirs.size()));
    std::vector<size_t>& places = places_.emplace_back();
    for (const std::string& name : predictions_)
      places.push_back(static_cast<size_t>(std::find(theirs.begin(), theirs.end(), name) - theirs.begin()));
    std::vector<size_t> order(theirs.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (!std::is_permutation(places.begin(), places.end(), order.begin(), order.end())) places = order;
  }
  if (counts.size() > 1) fail<InvalidArgument>("ensemble", "members have as many outputs; got {}", list_of(counts));
}

Value Ensemble::join(std::vector<Value> pieces, size_t first, size_t output) const {
  const Ints shape = without_first(pieces[0].shape());
  DType dtype = pieces[0].dtype();
  std::vector<std::string> lines;  // the first one's, and those of other shapes
  for (size_t member = first; const Value& piece : pieces) {
    const Ints own = without_first(piece.shape());
    if (member == first || without_ones(own) != without_ones(shape))
      lines.push_back(fmt::format("'{}' {}", members_[member].name, to_string(Shape(own))));
    dtype = common_type(dtype, piece.dtype());
    member += static_cast<size_t>(piece.extent(0));
  }
  if (lines.size() > 1)
    fail<InvalidArgument>("ensemble", "members give outputs of one shape; '{}' is {}", predictions_[output], list_of(lines));
  for (Value& piece : pieces) {
    Ints extents{piece.extent(0)};
    extents.insert(extents.end(), shape.begin(), shape.end());
    piece = convert(piece.shape() == Shape(extents) ? piece : reshape(piece, extents), dtype);
  }
  return concatenate(pieces, 0);
}

Graph Ensemble::lower(const keras::LowerOptions& options) const {
  return traced(options, [&](Graph& graph) { add_reductions(graph, add_members(graph, 0, members_.size(), options), options.batch); });
}

Graph Ensemble::lower_members(size_t first, size_t end, const keras::LowerOptions& options) const {
  return traced(options, [&](Graph& graph) {
    const std::vector<Value> outputs = add_members(graph, first, end, options);
    for (size_t i = 0; i < outputs.size(); ++i) graph.output(fmt::format("output{}", i), outputs[i]);
  });
}

Graph Ensemble::traced(const keras::LowerOptions& options, const std::function<void(Graph& graph)>& fill) const {
  Graph graph;
  const size_t own = options.trace != nullptr ? options.trace->size() : 0;
  if (options.trace != nullptr) options.trace->push_back({name(), std::string(class_name), 0, {}, 0, 0, nullptr});
  fill(graph);
  if (options.trace != nullptr) (*options.trace)[own].end_node = graph.nodes().size();
  return graph;
}

Graph Ensemble::lower_reductions(const std::vector<std::vector<Type>>& pieces, int64_t samples) const {
  Graph graph;
  std::vector<std::vector<Value>> by_output(pieces[0].size());
  for (size_t piece = 0; piece < pieces.size(); ++piece)
    for (size_t i = 0; i < by_output.size(); ++i)
      by_output[i].push_back(graph.input(fmt::format("piece{}.{}", piece, i), pieces[piece][i]));
  std::vector<Value> outputs;
  for (size_t i = 0; i < by_output.size(); ++i) outputs.push_back(join(std::move(by_output[i]), 0, i));
  add_reductions(graph, outputs, samples);
  return graph;
}

std::vector<Value> Ensemble::add_members(Graph& graph, size_t begin, size_t end, const keras::LowerOptions& options) const {
  refuse_problems();
  std::vector<Value> inputs;
  const std::vector<Type> types = input_types(options);
  for (size_t i = 0; i < types.size(); ++i) inputs.push_back(graph.input(inputs_[i].name, types[i]));
  std::vector<std::vector<Value>> outputs(predictions_.size());  // by output, then by member
  for (size_t m = begin; m < end; ++m) {
    const keras::AnyModel& model = *members_[m].model;
    keras::LowerOptions theirs{options.batch, {}, nullptr};
    std::vector<keras::LayerTrace> trace;
    if (options.trace != nullptr) theirs.trace = &trace;
    std::vector<Value> given;
    for (size_t i = 0; i < model.inputs().size(); ++i) {
      const Value source = inputs[sources_[m][i]];
      Ints extents = source.shape().extents();
      const Ints& wanted = model.inputs()[i].shape;
      if (!same_extents(extents, wanted)) {
        extents = wanted;
        extents[0] = options.batch;
      }
      theirs.input_shapes.emplace_back(extents);
      given.push_back(convert(source.shape() == Shape(extents) ? source : reshape(source, extents), model.inputs()[i].dtype));
    }
    const size_t first = graph.nodes().size();
    const Graph lowered = model.lower(theirs);
    const std::vector<Value> own = append(graph, lowered, given, members_[m].name + "/");
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].push_back(own[places_[m][i]]);
    // The member's inputs, its first nodes, are not copied.
    const size_t skipped = given.size();
    for (auto& layer : trace) {
      layer.first_node = first + std::max(layer.first_node, skipped) - skipped;
      layer.end_node = first + std::max(layer.end_node, skipped) - skipped;
      ++layer.depth;
      if (&layer == trace.data()) layer.name = members_[m].name;
      options.trace->push_back(std::move(layer));
    }
  }
  std::vector<Value> out;
  for (auto& pieces : outputs) {
    for (Value& piece : pieces) piece = expand_dims(piece, {0});
    out.push_back(join(std::move(pieces), begin, out.size()));
  }
  return out;
}

void Ensemble::add_reductions(Graph& graph, const std::vector<Value>& outputs, int64_t samples) const {
  size_t next = 0;
  for (const Value& all : outputs)
    for (const Reduction& reduction : options_.reductions)
      graph.output(output_names_[next++], reduce_members(reduction, {all, options_.weights, options_.ignore_nan}));
  if (options_.ignore_nan) graph.output(output_names_[next++], nan_members(outputs, samples));
}

}  // namespace tutti
