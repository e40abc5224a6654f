// Recurrent cells as recurrent layers run them: LSTM, GRU and SimpleRNN.
#pragma once

#include <functional>

#include "tutti/keras/layer.h"

namespace tutti::keras {

using Values = std::vector<Value>;

// A cell bound to its input. What does not depend on the state is computed for all steps at once, ahead of the loop.
struct CellRun {
  Value projected;  // [time, batch, ...]: the input's part, a slice for each step
  Values weights;   // seen whole by each step
  Shape state;      // of every state, batch included
  // The next states, of which the first is also the output. Values and `inside` belong to the graph that holds the step.
  std::function<Values(Call& inside, Value projected, const Values& states, const Values& weights)> step;
};

struct CellKind {
  // `c` is the cell's own call, or that of the layer whose config describes the cell, on the cell's scope; x: [time, batch, features].
  CellRun (*bind)(Call& c, Value x);
  size_t states;
};

CellRun lstm_cell(Call& c, Value x);
CellRun gru_cell(Call& c, Value x);
CellRun simple_rnn_cell(Call& c, Value x);
inline constexpr CellKind lstm_kind{lstm_cell, 2}, gru_kind{gru_cell, 1}, simple_rnn_kind{simple_rnn_cell, 1};
// By Keras's class name ("LSTMCell"); nullptr when it is not a cell.
const CellKind* find_cell(std::string_view class_name);

// From weights in Keras's order of gates (i, f, c, o; z, r, candidate); bias absent, [4 * units], or [2, 3 * units] for the input and for
// the state. `mask`: what the state is multiplied by at each gate, [gates, batch, units], the same at all steps; or absent.
CellRun lstm_run(Value x, Value kernel, Value recurrent, Value bias, Value mask = {});
CellRun gru_run(Value x, Value kernel, Value recurrent, Value bias, Value mask = {});

// Recurrent dropout: what the state, [batch, ...], is multiplied by at each gate, [gates, batch, ...], drawn once for all steps. Absent
// where there is none.
Value recurrent_mask(Call& c, int64_t gates, const Shape& state);

// The next [h, c] from the sums at the gates, z: [..., 4 * units] in the order i, f, c, o.
Values lstm_gates(Call& inside, Value z, Value c);

}  // namespace tutti::keras
