// Layers that run another layer: Bidirectional and TimeDistributed.
#include <algorithm>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/rnn.h"
#include "tutti/keras/lower.h"
#include "tutti/keras/promote.h"

namespace tutti::keras {

namespace {

// The config of a serialized layer, to be changed: {"class_name", "config"} without what is not read.
Json with_config(const Json& layer, Json config) {
  Json out = layer;
  out.set("config", std::move(config));
  return out;
}

Json inner_config(const Call& c, const Json& layer, std::string_view what) {
  const Json* config = layer.is_object() ? layer.find("config") : nullptr;
  if (config == nullptr || !config->is_object()) c.config.invalid("'{}' is a serialized layer; got {}", what, escape(layer.dump(), 60));
  return *config;
}

// A direction of Bidirectional: named as in Keras, zeros at masked steps where sequences are returned.
Json direction(const Call& c, const Json& layer, std::string_view what, const std::string& prefix, bool turn_round) {
  Json config = inner_config(c, layer, what);
  Config read(config, c.config.where());
  std::string name = read.text("name", "");
  bool backwards = read.flag("go_backwards", false), sequences = read.flag("return_sequences", false);
  if (!name.starts_with(prefix)) config.set("name", prefix + name);
  if (turn_round) config.set("go_backwards", !backwards);
  std::string_view class_name = resolve(layer).row->name;
  static constexpr std::string_view recurrent[] = {"LSTM",       "GRU",        "SimpleRNN", "RNN",     "ConvLSTM1D",
                                                   "ConvLSTM2D", "ConvLSTM3D", "CuDNNLSTM", "CuDNNGRU"};
  if (std::find(std::begin(recurrent), std::end(recurrent), class_name) == std::end(recurrent))
    c.config.unsupported("{} is not a recurrent layer", class_name);
  bool legacy_convolution = c.lowering.keras_major < 3 && class_name.starts_with("Conv");
  if (!class_name.starts_with("CuDNN") && !legacy_convolution) config.set("zero_output_for_mask", sequences);
  Json out = with_config(layer, std::move(config));
  if (out.has("name")) out.set("name", Json());
  return out;
}

Arguments direction_arguments(const Call& c, const RecurrentInput& input, size_t first_state, size_t end_state) {
  Arguments out;
  out.positional.emplace_back(Signal{input.x, {}});
  std::vector<Argument> states;
  for (size_t i = first_state; i < end_state; ++i) states.emplace_back(Signal{input.states[i], {}});
  if (!states.empty()) out.named.emplace_back("initial_state", std::move(states));
  if (input.mask) out.named.emplace_back("mask", Signal{input.mask, {}});
  for (const auto& argument : c.arguments.named)
    if (argument.first == "training") out.named.push_back(argument);
  return out;
}

Value merge(const Call& c, const std::string& mode, Value forward, Value backward) {
  if (mode == "concat") return concatenate({forward, backward}, -1);
  if (mode == "sum") return forward + backward;
  if (mode == "mul") return forward * backward;
  if (mode == "ave") return (forward + backward) / 2;
  c.config.invalid("'merge_mode' is concat, sum, mul, ave or null; got '{}'", mode);
}

Outputs bidirectional(Call& c) {
  if (c.config.integer("num_constants", 0) != 0) c.config.unsupported("constants are for custom cells, whose code is not in the file");
  bool given = c.config.has("backward_layer");
  const Json& layer = c.config.at("layer");
  Json forward_layer = direction(c, layer, "layer", "forward_", false);
  Json backward_layer = direction(c, given ? c.config.at("backward_layer") : layer, "backward_layer", "backward_", !given);
  Config config(*forward_layer.find("config"), c.config.where());
  bool sequences = config.flag("return_sequences", false), time_major = config.flag("time_major", false);

  RecurrentInput input = recurrent_input(c);
  size_t half = input.states.size() / 2;
  if (input.states.size() % 2 != 0) c.config.invalid("takes as many initial states forward as backward; got {}", input.states.size());
  auto forward = c.child("forward_layer", forward_layer, direction_arguments(c, input, 0, half)).signals;
  auto backward = c.child("backward_layer", backward_layer, direction_arguments(c, input, half, 2 * half)).signals;
  if (forward.size() != backward.size()) c.config.invalid("forward gives {} outputs, backward {}", forward.size(), backward.size());

  Value y = forward[0].value, reversed = backward[0].value;
  if (c.lowering.keras_major >= 3) {  // Keras 2 leaves what its layers compute in
    y = convert(y, c.policy.compute);
    reversed = convert(reversed, c.policy.compute);
  }
  if (sequences) reversed = flip(reversed, {time_major ? 0 : 1});
  Value mask = sequences ? input.output_mask : Value{};
  bool merged = c.config.has("merge_mode") || !c.config.json().has("merge_mode");
  std::vector<Signal> out;
  if (merged) {
    out = {{merge(c, c.config.text("merge_mode", "concat"), y, reversed), mask}};
  } else {
    out = {{y, mask}, {reversed, mask}};
  }
  out.insert(out.end(), forward.begin() + 1, forward.end());
  out.insert(out.end(), backward.begin() + 1, backward.end());
  return out;
}

// [batch, time, ...] <-> [batch * time, ...]
Value fold_time(const Call& c, Value x) {
  if (x.rank() < 3) c.config.invalid("takes inputs of rank 3 and more; got {}", to_string(x.shape()));
  Ints extents(x.shape().begin() + 1, x.shape().end());
  extents[0] *= x.extent(0);
  return reshape(x, extents);
}

Value unfold_time(const Call& c, Value y, int64_t batch, int64_t time) {
  if (y.rank() < 1 || y.extent(0) != batch * time)
    c.config.invalid("the layer inside gives {} for {} samples", to_string(y.shape()), batch * time);
  Ints extents = y.shape().extents();
  extents[0] = time;
  extents.insert(extents.begin(), batch);
  return reshape(y, extents);
}

// Keras 3 runs the layer inside under the wrapper's compute dtype, to which only a mixed policy casts its variables; the layers of a model
// keep their own.
Json under_own_policy(const Call& c, const Json& layer) {
  Json config = inner_config(c, layer, "layer");
  if (c.lowering.keras_major < 3 || config.has("layers")) return layer;
  Policy own = read_policy(Config(config, c.config.where()));
  DType compute = c.policy.compute;
  if (compute == c.policy.variable && is_float(compute) && is_float(own.variable)) compute = result_type({compute, own.variable});
  if (own.compute == compute || !is_float(compute)) return layer;
  config.set("dtype", fmt::format("{}_of_{}", numpy_name(compute), numpy_name(own.variable)));
  return with_config(layer, std::move(config));
}

Argument fold_argument(const Call& c, const Argument& argument) {
  Argument out = argument;
  if (argument.kind == Argument::Kind::tensor) {
    Value mask = argument.tensor.mask;
    // A mask of whole steps says nothing inside a step.
    out.tensor = {fold_time(c, argument.tensor.value), mask && mask.rank() > 2 ? fold_time(c, mask) : Value{}};
  }
  for (Argument& item : out.items) item = fold_argument(c, item);
  return out;
}

// What the next layer is told: Keras 3 passes the mask on, Keras 2 asks the layer inside and else keeps the steps.
Value distributed_mask(const Call& c, Value inner, int64_t batch, int64_t time) {
  Value mask = c.mask();
  if (c.lowering.keras_major >= 3) return mask;
  if (inner) return unfold_time(c, inner, batch, time);
  while (mask && mask.rank() > 2) mask = any(mask, {-1});
  return mask;
}

// Keras runs the layer at each time by itself, and past what adds its activity_regularizer; those of layers in it are added each time.
void count_activities(Call& c, size_t before, int64_t time) {
  if (c.lowering.fit == nullptr) return;
  auto& activities = c.lowering.fit->activities;
  const auto is_own = [&](const auto& one) { return one.first->keys() == c.scope().keys() + "/layer"; };
  const auto first = activities.begin() + static_cast<std::ptrdiff_t>(before);
  activities.erase(std::remove_if(first, activities.end(), is_own), activities.end());
  for (size_t i = before; i < activities.size(); ++i) activities[i].second = activities[i].second * static_cast<double>(time);
}

// Whether a layer, or one in it, does.
bool mixes_samples(const Json& json) {
  if (json.is_list()) return std::any_of(json.items().begin(), json.items().end(), mixes_samples);
  if (!json.is_object()) return false;
  const Json* name = json.find("class_name");
  const LayerRow* row = name != nullptr && name->is_string() ? find_layer(name->as_string()).row : nullptr;
  if (row != nullptr && row->mixes_samples) return true;
  return std::any_of(json.members().begin(), json.members().end(), [](const auto& member) { return mixes_samples(member.second); });
}

Argument argument_at(const Argument& argument, int64_t time) {
  Argument out = argument;
  const auto at = [&](Value x) { return squeeze(slice_axis(x, 1, time, time + 1), {1}); };
  if (argument.kind == Argument::Kind::tensor) {
    const Value mask = argument.tensor.mask;
    out.tensor = {at(argument.tensor.value), mask && mask.rank() > 1 ? at(mask) : Value{}};
  }
  for (Argument& item : out.items) item = argument_at(item, time);
  return out;
}

// As Keras does it: a call at each time, with statistics of its own.
Outputs call_by_call(Call& c, const Json& layer, const Argument& given, int64_t time) {
  const size_t before = c.lowering.fit->activities.size();
  std::vector<std::vector<Value>> by_output;
  for (int64_t t = 0; t < time; ++t) {
    Arguments arguments;
    arguments.positional.push_back(argument_at(given, t));
    for (const auto& argument : c.arguments.named)
      if (argument.first == "training") arguments.named.push_back(argument);
    const std::vector<Signal> out = c.child("layer", layer, arguments).signals;
    by_output.resize(out.size());
    for (size_t i = 0; i < out.size(); ++i) by_output[i].push_back(out[i].value);
  }
  count_activities(c, before, 1);
  std::vector<Signal> out;
  for (size_t i = 0; i < by_output.size(); ++i) out.push_back({stack(by_output[i], 1), i == 0 ? c.mask() : Value{}});
  return out;
}

// Samples do not see each other at inference, so time goes into the batch.
Outputs time_distributed(Call& c) {
  Json layer = under_own_policy(c, c.config.at("layer"));
  if (Config(layer.at("config"), c.config.where()).flag("stateful", false))
    c.config.unsupported("a stateful layer inside, whose state would go from step to step");
  int64_t batch = c.x().extent(0), time = c.x().rank() > 1 ? c.x().extent(1) : 0;
  const Argument* given = c.arguments.find(0, "inputs");
  if (given == nullptr) c.config.invalid("is called without inputs");
  if (c.lowering.fit != nullptr && c.lowering.fit->training && time > 0 && mixes_samples(layer))
    return call_by_call(c, layer, *given, time);
  Arguments arguments;
  arguments.positional.push_back(fold_argument(c, *given));
  if (Value mask = c.mask(); mask && mask.rank() > 2) arguments.named.emplace_back("mask", Signal{fold_time(c, mask), {}});
  for (const auto& argument : c.arguments.named)
    if (argument.first == "training") arguments.named.push_back(argument);
  const size_t before = c.lowering.fit != nullptr ? c.lowering.fit->activities.size() : 0;
  std::vector<Signal> out = c.child("layer", layer, arguments).signals;
  count_activities(c, before, time);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = {unfold_time(c, out[i].value, batch, time), i == 0 ? distributed_mask(c, out[i].mask, batch, time) : Value{}};
  return out;
}

}  // namespace

Rows wrapper_layers() {
  static const LayerRow rows[] = {
      {"Bidirectional", bidirectional, Masking::own, "layer merge_mode backward_layer num_constants", "", recurrent_call},
      {"TimeDistributed", time_distributed, Masking::own, "layer", "a stateful layer inside is refused"},
  };
  return rows;
}

}  // namespace tutti::keras
