// CuDNNLSTM and CuDNNGRU of legacy files: LSTM and GRU whose kernels lie gate by gate as cuDNN wants them, with a bias for the input and
// one for the state.
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/rnn.h"

namespace tutti::keras {

namespace {

// Applies `turn` to each gate's columns.
Value each_gate(Value kernel, int64_t gates, Value (*turn)(Value)) {
  Values out;
  int64_t units = kernel.extent(1) / gates;
  for (int64_t gate = 0; gate < gates; ++gate) out.push_back(turn(slice_axis(kernel, 1, gate * units, (gate + 1) * units)));
  return concatenate(out, 1);
}

// [in, units], stored as [units, in]
Value turn_input(Value kernel) { return transpose(reshape(kernel, {kernel.extent(1), kernel.extent(0)}), {1, 0}); }
Value turn_recurrent(Value kernel) { return transpose(kernel, {1, 0}); }

struct CudnnWeights {
  Value kernel, recurrent, bias;  // bias: [2, gates * units]
};

CudnnWeights cudnn_weights(Call& c, Value x, int64_t gates) {
  int64_t units = c.config.positive("units");
  Value kernel = c.weight("kernel", {x.extent(-1), gates * units}), recurrent = c.weight("recurrent_kernel", {units, gates * units});
  Value bias = reshape(c.weight("bias", {2 * gates * units}), {2, gates * units});
  return {each_gate(kernel, gates, turn_input), each_gate(recurrent, gates, turn_recurrent), bias};
}

CellRun cudnn_lstm_cell(Call& c, Value x) {
  auto [kernel, recurrent, bias] = cudnn_weights(c, x, 4);
  return lstm_run(x, kernel, recurrent, sum(bias, {0}));
}

CellRun cudnn_gru_cell(Call& c, Value x) {
  auto [kernel, recurrent, bias] = cudnn_weights(c, x, 3);
  return gru_run(x, kernel, recurrent, bias);
}

Outputs cudnn(Call& c, const CellKind& kind) {
  RecurrentInput input = recurrent_input(c);
  if (input.x.rank() != 3) c.config.invalid("takes [batch, time, features]; got {}", to_string(input.x.shape()));
  if (input.mask) c.config.unsupported("cuDNN layers know no masks");
  // The weights are the layer's own, not those of a cell.
  return recurrent_outputs(c, input, run_cells(c, {{kind, c}}, input));
}

Outputs cudnn_lstm(Call& c) { return cudnn(c, {cudnn_lstm_cell, 2}); }
Outputs cudnn_gru(Call& c) { return cudnn(c, {cudnn_gru_cell, 1}); }

}  // namespace

Rows cudnn_layers() {
  static const LayerRow rows[] = {
      {"CuDNNLSTM", cudnn_lstm, Masking::own, "units unit_forget_bias return_sequences return_state go_backwards stateful time_major",
       "legacy files", recurrent_call},
      {"CuDNNGRU", cudnn_gru, Masking::own, "units return_sequences return_state go_backwards stateful time_major", "legacy files",
       recurrent_call},
  };
  return rows;
}

}  // namespace tutti::keras
