#include "tutti/run/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
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

// [samples, members]: whether any of a member's outputs for the sample is NaN.
Value nan_members(Graph& graph, const std::vector<std::vector<Value>>& outputs, int64_t samples) {
  std::vector<Value> columns;
  for (const auto& member : outputs) {
    Value found = full(graph, {DType::boolean, {samples}}, 0);
    for (Value value : member) {
      if (value.rank() == 0 || value.extent(0) != samples)
        fail<Unsupported>("ensemble", "ignoring NaN needs one row a sample; an output is {}", to_string(value.shape()));
      Ints others(static_cast<size_t>(value.rank() - 1));
      std::iota(others.begin(), others.end(), 1);
      found = logical_or(found, any(is_nan(value), others));
    }
    columns.push_back(found);
  }
  return stack(columns, 1);
}

}  // namespace

Ensemble::Ensemble(std::vector<Member> members, EnsembleOptions options) : members_(std::move(members)), options_(std::move(options)) {
  if (members_.empty()) fail<InvalidArgument>("ensemble", "an ensemble has at least one member");
  if (options_.reductions.empty()) fail<InvalidArgument>("ensemble", "an ensemble has at least one reduction");
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
  const auto& first = members_[0].model->output_names();
  std::vector<std::string> counts;  // the first one's, and others
  for (const Member& member : members_)
    if (const size_t count = member.model->output_names().size(); counts.empty() || count != first.size())
      counts.push_back(fmt::format("'{}' {}", member.name, count));
  if (counts.size() > 1) fail<InvalidArgument>("ensemble", "members have as many outputs; got {}", list_of(counts));
  for (const std::string& output : first)
    for (const Reduction& reduction : options_.reductions)
      output_names_.push_back(first.size() == 1 ? reduction.name() : output + "." + reduction.name());
  if (options_.ignore_nan) output_names_.emplace_back("nan_members");
}

void Ensemble::match_inputs() {
  inputs_ = members_[0].model->inputs();
  std::vector<std::string> lines;  // the first one's, and those that do not go with it
  for (const Member& member : members_) {
    const auto& theirs = member.model->inputs();
    sources_.push_back(match(inputs_, theirs));
    const bool fits = sources_.back().size() == theirs.size() && inputs_.size() == theirs.size();
    if (lines.empty() || !fits) lines.push_back(fmt::format("'{}' {}", member.name, inputs_text(theirs)));
    if (!fits) continue;
    for (size_t i = 0; i < theirs.size(); ++i) {
      Ints& shape = inputs_[sources_.back()[i]].shape;
      if (shape.size() != theirs[i].shape.size()) continue;
      for (size_t axis = 1; axis < shape.size(); ++axis)  // what one member leaves open another one may fix
        if (shape[axis] < 0) shape[axis] = theirs[i].shape[axis];
    }
  }
  if (lines.size() > 1) fail<InvalidArgument>("ensemble", "members take the same inputs; got {}", list_of(lines));
}

std::vector<Value> Ensemble::alike(const std::vector<std::vector<Value>>& outputs, size_t output) const {
  const Value first = outputs[0][output];
  std::vector<Value> out;
  DType dtype = first.dtype();
  std::vector<std::string> lines;  // the first one's, and those of other shapes
  for (size_t m = 0; m < outputs.size(); ++m) {
    const Value value = outputs[m][output];
    if (m == 0 || without_ones(value.shape().extents()) != without_ones(first.shape().extents()))
      lines.push_back(fmt::format("'{}' {}", members_[m].name, to_string(value.shape())));
    if (value.dtype() != dtype) dtype = DType::f32;
    out.push_back(value);
  }
  if (lines.size() > 1)
    fail<InvalidArgument>("ensemble", "members give outputs of one shape; '{}' is {}", members_[0].model->output_names()[output],
                          list_of(lines));
  for (Value& value : out) value = convert(value.shape() == first.shape() ? value : reshape(value, first.shape()), dtype);
  return out;
}

Graph Ensemble::lower(const keras::LowerOptions& options) const {
  refuse_problems();
  Graph graph;
  std::vector<Value> inputs;
  const std::vector<Type> types = input_types(options);
  for (size_t i = 0; i < types.size(); ++i) inputs.push_back(graph.input(inputs_[i].name, types[i]));
  const size_t own = options.trace != nullptr ? options.trace->size() : 0;
  if (options.trace != nullptr) options.trace->push_back({name(), std::string(class_name), 0, {}, 0, 0, nullptr});

  std::vector<std::vector<Value>> outputs;
  for (size_t m = 0; m < members_.size(); ++m) {
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
    outputs.push_back(append(graph, lowered, given, members_[m].name + "/"));
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
  size_t next = 0;
  for (size_t output = 0; output < outputs[0].size(); ++output) {
    const ReductionInput members{alike(outputs, output), options_.weights, options_.ignore_nan};
    for (const Reduction& reduction : options_.reductions) graph.output(output_names_[next++], reduce_members(reduction, members));
  }
  if (options_.ignore_nan) graph.output(output_names_[next++], nan_members(graph, outputs, options.batch));
  if (options.trace != nullptr) (*options.trace)[own].end_node = graph.nodes().size();
  return graph;
}

}  // namespace tutti
