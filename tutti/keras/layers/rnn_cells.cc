#include "tutti/keras/layers/rnn_cells.h"

#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/random.h"
#include "tutti/keras/layers/windows.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

// Part `index` of `count` equal ones along the last axis.
Value part(Value x, int64_t index, int64_t count) {
  int64_t size = x.extent(-1) / count;
  return slice_axis(x, -1, index * size, (index + 1) * size);
}

Value activate_by(Call& inside, std::string_view key, const char* otherwise, Value x) {
  // A missing option has Keras's default; null means linear.
  const Json* given = inside.config.json().is_object() ? inside.config.json().find(key) : nullptr;
  // A softmax runs along the axis that is the last one in Keras.
  const bool channels_first = inside.config.channels_first();
  const Value y = activate(inside, given != nullptr ? *given : Json(otherwise), from_channels_last(x, channels_first));
  return to_channels_last(y, channels_first);
}

Value activation(Call& inside, Value x) { return activate_by(inside, "activation", "tanh", x); }
Value recurrent_activation(Call& inside, Value x) { return activate_by(inside, "recurrent_activation", "sigmoid", x); }

// x: [..., in], kernel: [in, out]
Value project(Value x, Value kernel) { return dot_general(x, kernel, {{}, {}, {x.rank() - 1}, {0}}); }

// The state's part of the sums at `gates` gates, [batch, gates * units]; where the state is masked, each gate sees its own mask.
Value project_state(Value h, Value recurrent, Value mask, int64_t gates) {
  if (!mask) return project(h, recurrent);
  std::vector<Value> parts;
  for (int64_t gate = 0; gate < gates; ++gate) parts.push_back(project(h * index_axis(mask, 0, gate), part(recurrent, gate, gates)));
  return concatenate(parts, -1);
}

// With the mask behind them, if there is one.
Values with_mask(Values weights, Value mask) {
  if (mask) weights.push_back(mask);
  return weights;
}

}  // namespace

Value recurrent_mask(Call& c, int64_t gates, const Shape& state) {
  const double rate = c.config.number("recurrent_dropout", 0);
  if (!c.draws() || rate <= 0) return {};
  Ints extents = state.extents();
  extents.insert(extents.begin() + 1, gates);  // what a sample draws lies together
  return moveaxis(dropped(c, full(c.graph, {c.policy.compute, extents}, 1), rate, extents), {1}, {0});
}

Values lstm_gates(Call& inside, Value z, Value c) {
  Value i = recurrent_activation(inside, part(z, 0, 4));
  Value f = recurrent_activation(inside, part(z, 1, 4));
  c = f * c + i * activation(inside, part(z, 2, 4));
  Value o = recurrent_activation(inside, part(z, 3, 4));
  return {o * activation(inside, c), c};
}

CellRun lstm_run(Value x, Value kernel, Value recurrent, Value bias, Value mask) {
  Value projected = project(x, kernel);
  if (bias) projected = projected + bias;
  auto step = [](Call& inside, Value p, const Values& states, const Values& weights) {
    return lstm_gates(inside, p + project_state(states[0], weights[0], weights.size() > 1 ? weights[1] : Value{}, 4), states[1]);
  };
  return {projected, with_mask({recurrent}, mask), {x.extent(1), recurrent.extent(0)}, step};
}

CellRun gru_run(Value x, Value kernel, Value recurrent, Value bias, Value mask) {
  Value projected = project(x, kernel);
  Values weights{recurrent};
  if (bias) {
    projected = projected + index_axis(bias, 0, 0);
    weights.push_back(index_axis(bias, 0, 1));
  }
  auto step = [has_bias = bool(bias), has_mask = bool(mask)](Call& inside, Value p, const Values& states, const Values& w) -> Values {
    Value h = states[0], inner = project_state(h, w[0], has_mask ? w.back() : Value{}, 3);  // [batch, 3 * units]: z, r, candidate
    if (has_bias) inner = inner + w[1];
    Value z = recurrent_activation(inside, part(p, 0, 3) + part(inner, 0, 3));
    Value r = recurrent_activation(inside, part(p, 1, 3) + part(inner, 1, 3));
    Value candidate = activation(inside, part(p, 2, 3) + r * part(inner, 2, 3));
    return {z * h + (1.0 - z) * candidate};
  };
  return {projected, with_mask(weights, mask), {x.extent(1), recurrent.extent(0)}, step};
}

namespace {

// The older form: the state is reset before its product.
CellRun gru_run_reset_before(Value x, Value kernel, Value recurrent, Value bias, Value mask) {
  int64_t units = recurrent.extent(0);
  Value projected = project(x, kernel);
  if (bias) projected = projected + bias;
  auto step = [](Call& inside, Value p, const Values& states, const Values& w) -> Values {
    const Value drop = w.size() > 2 ? w[2] : Value{};
    Value h = states[0], inner = project_state(h, w[0], drop, 2);  // [batch, 2 * units]: z, r
    Value z = recurrent_activation(inside, part(p, 0, 3) + part(inner, 0, 2));
    Value r = recurrent_activation(inside, part(p, 1, 3) + part(inner, 1, 2));
    Value candidate = activation(inside, part(p, 2, 3) + project(r * (drop ? h * index_axis(drop, 0, 2) : h), w[1]));
    return {z * h + (1.0 - z) * candidate};
  };
  Values weights{slice_axis(recurrent, 1, 0, 2 * units), slice_axis(recurrent, 1, 2 * units, 3 * units)};
  return {projected, with_mask(weights, mask), {x.extent(1), units}, step};
}

}  // namespace

CellRun lstm_cell(Call& c, Value x) {
  int64_t units = c.config.positive("units");
  Value kernel = c.weight("kernel", {x.extent(-1), 4 * units}), recurrent = c.weight("recurrent_kernel", {units, 4 * units});
  return lstm_run(x, kernel, recurrent, c.config.flag("use_bias", true) ? c.weight("bias", {4 * units}) : Value{},
                  recurrent_mask(c, 4, {x.extent(1), units}));
}

CellRun gru_cell(Call& c, Value x) {
  int64_t units = c.config.positive("units");
  // Files from before the option existed hold the older form.
  bool reset_after = c.config.flag("reset_after", c.lowering.keras_major >= 3);
  Value kernel = c.weight("kernel", {x.extent(-1), 3 * units}), recurrent = c.weight("recurrent_kernel", {units, 3 * units}), bias;
  if (c.config.flag("use_bias", true)) bias = c.weight("bias", reset_after ? Shape{2, 3 * units} : Shape{3 * units});
  return (reset_after ? gru_run : gru_run_reset_before)(x, kernel, recurrent, bias, recurrent_mask(c, 3, {x.extent(1), units}));
}

CellRun simple_rnn_cell(Call& c, Value x) {
  int64_t units = c.config.positive("units");
  Value kernel = c.weight("kernel", {x.extent(-1), units}), recurrent = c.weight("recurrent_kernel", {units, units});
  Value projected = project(x, kernel);
  if (c.config.flag("use_bias", true)) projected = projected + c.weight("bias", {units});
  auto step = [](Call& inside, Value p, const Values& states, const Values& weights) -> Values {
    return {activation(inside, p + project_state(states[0], weights[0], weights.size() > 1 ? weights[1] : Value{}, 1))};
  };
  return {projected, with_mask({recurrent}, recurrent_mask(c, 1, {x.extent(1), units})), {x.extent(1), units}, step};
}

const CellKind* find_cell(std::string_view class_name) {
  if (class_name == "LSTMCell") return &lstm_kind;
  if (class_name == "GRUCell") return &gru_kind;
  if (class_name == "SimpleRNNCell") return &simple_rnn_kind;
  return nullptr;
}

}  // namespace tutti::keras
