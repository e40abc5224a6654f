// ConvLSTM1D, 2D and 3D: an LSTM whose products are convolutions. Inside, channels are always last.
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/rnn.h"
#include "tutti/keras/layers/windows.h"

namespace tutti::keras {

namespace {

Shape with_axes(const Ints& lead, const Ints& middle, const Ints& tail) {
  Ints out = lead;
  out.insert(out.end(), middle.begin(), middle.end());
  out.insert(out.end(), tail.begin(), tail.end());
  return out;
}

constexpr int64_t gate_count = 4;

// x: [time, batch, spatial..., channels]
CellRun conv_lstm_cell(Call& c, Value x) {
  int64_t spatial = x.rank() - 3, filters = c.config.positive("filters");
  Ints size = c.config.ints("kernel_size", spatial);
  Windows windows{.strides = c.config.ints("strides", spatial, Ints(static_cast<size_t>(spatial), 1)),
                  .dilation = c.config.ints("dilation_rate", spatial, Ints(static_cast<size_t>(spatial), 1)),
                  .padding = c.config.text("padding", "valid")};
  Value kernel = c.weight("kernel", with_axes({}, size, {x.extent(-1), gate_count * filters}));
  Value recurrent = c.weight("recurrent_kernel", with_axes({}, size, {filters, gate_count * filters}));
  // All steps of all samples are one batch.
  Ints steps{x.extent(0), x.extent(1)}, image(x.shape().begin() + 2, x.shape().end());
  Value projected = convolve(reshape(x, with_axes({x.extent(0) * x.extent(1)}, image, {})), kernel, windows);
  if (c.config.flag("use_bias", true)) projected = projected + c.weight("bias", {gate_count * filters});
  Ints positions(projected.shape().begin() + 1, projected.shape().end() - 1);
  const Shape state = with_axes({x.extent(1)}, positions, {filters});
  auto step = [same = Windows{.strides = Ints(static_cast<size_t>(spatial), 1), .padding = "same"}](
                  Call& inside, Value p, const Values& states, const Values& weights) {
    const Value h = states[0], kernels = weights[0];
    if (weights.size() == 1) return lstm_gates(inside, p + convolve(h, kernels, same), states[1]);
    // Each gate sees its own mask.
    Values parts;
    const int64_t each = kernels.extent(-1) / gate_count;
    for (int64_t gate = 0; gate < gate_count; ++gate)
      parts.push_back(convolve(h * index_axis(weights[1], 0, gate), slice_axis(kernels, -1, gate * each, (gate + 1) * each), same));
    return lstm_gates(inside, p + concatenate(parts, -1), states[1]);
  };
  Values weights{recurrent};
  if (const Value mask = recurrent_mask(c, gate_count, state)) weights.push_back(mask);
  return {reshape(projected, with_axes(steps, positions, {gate_count * filters})), weights, state, step};
}

constexpr CellKind conv_lstm_kind{conv_lstm_cell, 2};

template <int64_t spatial>
Outputs conv_lstm(Call& c) {
  RecurrentInput input = recurrent_input(c);
  if (input.x.rank() != spatial + 3) c.config.invalid("takes inputs of rank {}; got {}", spatial + 3, to_string(input.x.shape()));
  bool channels_first = c.config.channels_first();
  if (channels_first) input.x = moveaxis(input.x, {2}, {-1});
  for (Value& state : input.states) state = to_channels_last(state, channels_first);
  RecurrentOutput result = run_cells(c, {own_cell(c, conv_lstm_kind, "conv_lstm_cell")}, input);
  if (channels_first) result.output = moveaxis(result.output, {-1}, {c.config.flag("return_sequences", false) ? 2 : 1});
  for (Value& state : result.states) state = from_channels_last(state, channels_first);
  return recurrent_outputs(c, input, result);
}

}  // namespace

Rows conv_lstm_layers() {
  constexpr std::string_view options =
      "filters kernel_size strides padding data_format dilation_rate activation recurrent_activation use_bias unit_forget_bias dropout "
      "recurrent_dropout return_sequences return_state go_backwards stateful unroll zero_output_for_mask time_major rank implementation";
  constexpr std::string_view note = "stateful: every run starts from zero states";
  static const LayerRow rows[] = {
      {"ConvLSTM1D", conv_lstm<1>, Masking::own, options, note, recurrent_call},
      {"ConvLSTM2D", conv_lstm<2>, Masking::own, options, note, recurrent_call},
      {"ConvLSTM3D", conv_lstm<3>, Masking::own, options, note, recurrent_call},
  };
  return rows;
}

}  // namespace tutti::keras
