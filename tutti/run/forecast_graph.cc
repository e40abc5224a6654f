#include "tutti/run/forecast_graph.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/run/ensemble.h"
#include "tutti/transform/append.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

// -1 prints as "any".
std::string open_shape(const Ints& shape) {
  std::string out;
  for (int64_t extent : shape) out += (out.empty() ? "" : ", ") + (extent < 0 ? std::string("any") : std::to_string(extent));
  return "[" + out + "]";
}

// A graph without weights, and the weights it now takes as inputs: a scan's body has none of its own.
struct OpenGraph {
  Graph graph;
  std::vector<Value> arguments;  // of the outer graph, in the order of the inputs; the model's own input is empty
};

OpenGraph weights_as_inputs(Graph& outer, const Graph& model, const std::string& prefix) {
  OpenGraph out;
  Rebuild rebuild(model);
  for (const Node& node : model.nodes()) {
    if (node.op == Op::parameter && role(node) == Graph::Role::weight) {
      const Type& type = model.type(node.results[0]);
      const std::string name(node.attributes.text("name"));
      rebuild.map(node.results[0], rebuild.graph().input(name, type));
      out.arguments.push_back(outer.parameter(Graph::Role::weight, prefix + name, type, node.literal));
    } else {
      rebuild.copy(node);
      if (node.op == Op::parameter) out.arguments.emplace_back();
    }
  }
  out.graph = rebuild.finish();
  return out;
}

// A window as the member wants it, and its prediction as f32 [batch, steps].
Value window_input(Value window, const WindowModel& member) {
  Value last = slice_axis(window, 1, window.extent(1) - member.lags, std::nullopt);
  return convert(member.flat ? flatten(last, 1) : last, member.model->inputs()[0].dtype);
}

Value prediction(Value output, const WindowModel& member) { return reshape(convert(output, DType::f32), {output.extent(0), member.steps}); }

// Predicts, moves the window on over what was predicted, predicts again. future: [batch, horizon, features], or empty. Gives
// [batch, at least horizon].
Value roll_forward(Value window, Value future, const WindowModel& member, const Graph& lowered, int64_t horizon,
                   const std::string& prefix) {
  if (!lowered.parameters(Graph::Role::state).empty())
    fail<Unsupported>("forecast",
                      "model '{}' keeps state from one run to the next, so it cannot be rolled forward; it predicts {} of {} steps",
                      escape(member.name, 60), member.steps, horizon);
  const int64_t batch = window.extent(0), lags = window.extent(1), steps = member.steps, strides = (horizon + steps - 1) / steps;
  OpenGraph open = weights_as_inputs(window.graph(), lowered, prefix);
  std::vector<Value> slices, weights;
  if (future) {
    // What is missing of the last stride is never looked at.
    Value all = pad(future, 0, {0, 0, 0}, {0, strides * steps - horizon, 0});
    Value strided = reshape(all, {batch, strides, steps, future.extent(2)});
    slices.push_back(swapaxes(strided, 0, 1));  // [stride, batch, step, feature]
  }
  for (Value argument : open.arguments)
    if (argument) weights.push_back(argument);
  auto step = [&](Graph& body, const std::vector<Value>& carries, const std::vector<Value>& slice, const std::vector<Value>& whole) {
    std::vector<Value> arguments;
    size_t next = 0;
    for (Value argument : open.arguments) arguments.push_back(argument ? whole[next++] : window_input(carries[0], member));
    Value target = prediction(append(body, open.graph, arguments)[0], member);
    Value rows = expand_dims(target, {2});
    if (!slice.empty()) rows = concatenate({rows, slice[0]}, 2);
    Value moved = concatenate({carries[0], rows}, 1);
    return ScanStep{{slice_axis(moved, 1, moved.extent(1) - lags, std::nullopt)}, {target}};
  };
  Value stacked = scan({window}, slices, weights, strides, false, step).stacked[0];  // [stride, batch, step]
  return reshape(swapaxes(stacked, 0, 1), {batch, strides * steps});
}

}  // namespace

WindowModel window_model(std::string member, std::shared_ptr<const keras::AnyModel> model, int64_t lags, int64_t columns) {
  const std::string name = escape(member, 60);
  if (!model->problems().empty()) model->lower({});  // throws, and lists them
  if (model->inputs().size() != 1 || predictions_of(*model) != 1)
    fail<InvalidArgument>("forecast", "model '{}' has {} inputs and {} outputs; a forecast needs one window in and one prediction out",
                          name, model->inputs().size(), predictions_of(*model));
  const keras::ModelInput& input = model->inputs()[0];
  const std::string shape = open_shape(input.shape);
  const auto rank = input.shape.size();
  if ((rank != 2 && rank != 3) || !is_float(input.dtype))
    fail<InvalidArgument>("forecast",
                          "model '{}' takes {} {}; a window is [batch, lags, columns] or flat [batch, lags * columns] of floats", name,
                          numpy_name(input.dtype), shape);
  WindowModel out{std::move(member), std::move(model), 1, lags, columns, 1, rank == 2};
  if (rank == 3 && input.shape[2] >= 0 && input.shape[2] != columns)
    fail<InvalidArgument>("forecast", "model '{}' takes {}, so {} columns; target and features are {}; hint: --features", name, shape,
                          input.shape[2], columns);
  const int64_t own = input.shape[1];  // -1: any
  if (own >= 0 && rank == 2 && own % columns != 0)
    fail<InvalidArgument>("forecast", "model '{}' takes {}, which is no whole number of rows of {} columns (target and features)", name,
                          shape, columns);
  const int64_t own_lags = rank == 2 && own >= 0 ? own / columns : own;
  if (lags == 0 && own_lags < 0)
    fail<InvalidArgument>("forecast", "model '{}' takes {}: windows of any length; hint: --lags says how long they are", name, shape);
  if (lags > 0 && own_lags >= 0 && own_lags != lags)
    fail<InvalidArgument>("forecast", "model '{}' takes {}, windows of {}; got --lags {}", name, shape, own_lags, lags);
  if (own_lags == 0) fail<InvalidArgument>("forecast", "model '{}' takes {}: windows without rows", name, shape);
  if (lags == 0) out.lags = own_lags;

  constexpr int64_t probe = 2;
  const Graph graph = out.model->lower({probe, {out.input_shape(probe)}, nullptr});
  const Type& type = graph.type(graph.outputs()[0].value);
  const auto& extents = type.shape;
  const bool fits = extents.rank() >= 1 && extents[0] == probe && (extents.rank() < 3 || (extents.rank() == 3 && extents[2] == 1));
  if (!fits || !is_float(type.dtype) || (extents.rank() > 1 && extents[1] == 0))
    fail<InvalidArgument>("forecast", "model '{}' gives {} for {} windows; a forecast is [batch, steps] or [batch, steps, 1] of the target",
                          name, to_string(type), probe);
  out.steps = extents.rank() > 1 ? extents[1] : 1;
  return out;
}

Graph forecast_graph(const std::vector<WindowModel>& members, const ForecastShape& shape, std::vector<keras::LayerTrace>* trace) {
  Graph graph;
  Value window = graph.input("windows", {DType::f32, {shape.batch, shape.lags, shape.columns}}), future;
  const bool rolls = std::any_of(members.begin(), members.end(), [&](const WindowModel& m) { return m.steps < shape.horizon; });
  if (rolls && shape.columns > 1) future = graph.input("future", {DType::f32, {shape.batch, shape.horizon, shape.columns - 1}});
  if (trace != nullptr) trace->push_back({"forecast", std::string(Ensemble::class_name), 0, {}, 0, 0, nullptr});
  std::vector<Value> each;
  std::vector<double> weights;
  for (size_t i = 0; i < members.size(); ++i) {
    const WindowModel& member = members[i];
    const Graph lowered = member.model->lower({shape.batch, {member.input_shape(shape.batch)}, nullptr});
    const std::string prefix = members.size() > 1 ? fmt::format("member{}/", i) : "";
    const size_t first = graph.nodes().size();
    Value forecast = member.steps < shape.horizon ? roll_forward(window, future, member, lowered, shape.horizon, prefix)
                                                  : prediction(append(graph, lowered, {window_input(window, member)}, prefix)[0], member);
    each.push_back(slice_axis(forecast, 1, 0, shape.horizon));
    weights.push_back(member.weight);
    if (trace != nullptr) trace->push_back({member.name, "Model", 1, {}, first, graph.nodes().size(), nullptr});
  }
  if (std::all_of(members.begin(), members.end(), [](const WindowModel& m) { return m.weight == 1; })) weights.clear();
  const ReductionInput forecasts{stack(each, 0), weights, shape.ignore_nan};
  graph.output("members", forecasts.all);
  graph.output("mean", reduce_members({Reduce::mean}, forecasts));
  std::vector<Value> found;
  for (double q : shape.quantiles) found.push_back(reduce_members({Reduce::quantile, q}, forecasts));
  if (!found.empty()) graph.output("quantiles", stack(found, 0));
  if (trace != nullptr) trace->front().end_node = graph.nodes().size();
  return graph;
}

}  // namespace tutti
