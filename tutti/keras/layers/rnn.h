// Recurrent layers: cells run over a sequence, with masks and states.
#pragma once

#include "tutti/keras/layers/rnn_cells.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

inline constexpr std::string_view recurrent_call = "initial_state mask training";  // of LayerRow

struct Cell {
  CellKind kind;
  Call call;  // on the cell's scope
};

// What a recurrent layer is called with.
struct RecurrentInput {
  Value x;            // [batch, time, ...], [time, batch, ...] when time_major
  Values states;      // initial ones, cells in order; empty: zeros
  Value mask;         // bool, axes as x; absent: every step counts
  Value output_mask;  // what the next layer is told; it can differ from what this one heeds
};
RecurrentInput recurrent_input(Call& c);

struct RecurrentOutput {
  Value output;
  Values states;
};
// Runs cells, each on the outputs of the one before, by the options of the layer's config.
RecurrentOutput run_cells(Call& c, const std::vector<Cell>& cells, const RecurrentInput& input);
// The layer's outputs in Keras's order, by return_sequences and return_state.
Outputs recurrent_outputs(Call& c, const RecurrentInput& input, const RecurrentOutput& result);

// The cell of a layer whose own config describes it (LSTM, ConvLSTM2D).
Cell own_cell(Call& c, const CellKind& kind, const std::string& name);

}  // namespace tutti::keras
