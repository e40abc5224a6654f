#include "tutti/keras/layers/rnn.h"
#include "tutti/keras/layers/random.h"

#include <algorithm>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/models.h"

namespace tutti::keras {

namespace {

const Arguments no_arguments;

// At a masked step states are held, and the output is the state, or the last output, or after all steps zeros.
struct RnnOptions {
  bool return_sequences, go_backwards, unroll, time_major;
  bool hold_output, zero_output;
};

RnnOptions read_options(const Call& c, bool zero_states) {
  const Config& config = c.config;
  RnnOptions out{config.flag("return_sequences", false),
                 config.flag("go_backwards", false),
                 config.flag("unroll", false),
                 config.flag("time_major", false),
                 false,
                 config.flag("zero_output_for_mask", false)};
  // Keras 3 repeats the state, Keras 2 and unrolled loops the last output, which begins as zeros: the same thing when the state does too.
  out.hold_output = (c.lowering.keras_major < 3 || out.unroll) && !zero_states;
  return out;
}

// bool [time, batch, 1, ...] of the rank of a step's values with time.
Value step_mask(const Call& c, Value mask, const RnnOptions& options, int64_t rank) {
  if (mask.dtype() != DType::boolean) mask = compare(mask, 0, Direction::NE);
  if (mask.rank() == 3) mask = any(mask, {2});
  if (mask.rank() != 2) c.config.unsupported("a mask of shape {} is not [batch, time]", to_string(mask.shape()));
  if (!options.time_major) mask = swapaxes(mask, 0, 1);
  Ints extents = mask.shape().extents();
  extents.resize(static_cast<size_t>(rank), 1);
  return reshape(mask, extents);
}

struct Loop {
  Value sequence;  // [time, batch, ...] in order of time; absent unless wanted
  Value last;      // the output of the step that ran last
  Values states;
};

Loop run_loop(Call& cell, const CellRun& run, Values carries, Value mask, const RnnOptions& options, bool want_sequence) {
  size_t states = carries.size();
  bool hold_output = mask && options.hold_output;
  if (hold_output) carries.push_back(full_like(carries[0], 0));
  Values slices{run.projected};
  if (mask) slices.push_back(mask);
  auto step = [&](Graph& body, Values carry, const Values& slice, const Values& weights) {
    Lowering lowering(body, cell.lowering.file);
    Call inside(cell.config, no_arguments, cell.policy, true, lowering, cell.scope());
    ScanStep next{run.step(inside, slice[0], {carry.begin(), carry.begin() + static_cast<std::ptrdiff_t>(states)}, weights), {}};
    if (!body.parameters(Graph::Role::weight).empty())
      cell.config.unsupported("an activation with weights of its own inside a recurrent layer");
    if (hold_output) next.carries.push_back(next.carries[0]);
    if (mask)
      for (size_t i = 0; i < carry.size(); ++i) next.carries[i] = select(slice[1], next.carries[i], carry[i]);
    if (want_sequence) next.stacked.push_back(hold_output ? next.carries.back() : next.carries[0]);
    return next;
  };
  ScanResult result = scan(carries, slices, run.weights, run.projected.extent(0), options.go_backwards, step);
  Loop out{want_sequence ? result.stacked[0] : Value{}, hold_output ? result.carries.back() : result.carries[0], result.carries};
  out.states.resize(states);
  return out;
}

// At masked steps the outputs are zeros.
void zero_masked(Loop& loop, Value mask, const RnnOptions& options) {
  // Keras's unrolled loop forgets to turn the mask round. Under JAX it leaves out the zeros; TensorFlow and Keras 2 are followed here.
  bool turned = options.unroll && options.go_backwards;
  if (loop.sequence) loop.sequence = select(turned ? flip(mask, {0}) : mask, loop.sequence, full_like(loop.sequence, 0));
  Value last = index_axis(mask, 0, options.go_backwards ? 0 : mask.extent(0) - 1);
  loop.last = select(last, loop.last, full_like(loop.last, 0));
}

// Dropout is nothing at inference, unless the model was built to keep it.
void refuse_training(const Call& c, const Config& cell) {
  if (!c.draws() && c.training() && (cell.number("dropout", 0) > 0 || cell.number("recurrent_dropout", 0) > 0))
    c.config.unsupported("is called with training=True, so its dropout would draw random numbers at inference");
}

// One draw for all steps. x: [time, batch, ...], or without time.
Value with_input_dropout(Call& c, const Config& cell, Value x, bool has_time) {
  Ints noise = x.shape().extents();
  if (has_time) noise[0] = 1;
  return dropped(c, x, cell.number("dropout", 0), noise);
}

}  // namespace

RecurrentInput recurrent_input(Call& c) {
  RecurrentInput out{c.x(), {}, c.mask(), c.mask()};
  std::vector<Signal> states;
  if (const Argument* given = c.arguments.find(1, "initial_state")) {
    states = given->tensors();
    if (states.empty()) c.config.unsupported("an initial_state that is not made by the model's layers");
  } else {
    states.assign(c.inputs().begin() + 1, c.inputs().end());
  }
  for (const auto& state : states) out.states.push_back(state.value);
  // With several tensors as arguments, Keras 3 fills in no mask by itself, though it passes it on.
  bool given = c.arguments.find("mask") != nullptr;
  if (c.lowering.keras_major >= 3 && !states.empty() && !given) out.mask = {};
  if (out.x.rank() < 3) c.config.invalid("takes a sequence, [batch, time, features]; got {}", to_string(out.x.shape()));
  return out;
}

RecurrentOutput run_cells(Call& c, const std::vector<Cell>& cells, const RecurrentInput& input) {
  size_t expected = 0;
  for (const Cell& cell : cells) expected += cell.kind.states;
  if (!input.states.empty() && input.states.size() != expected)
    c.config.invalid("takes {} initial states; got {}", expected, input.states.size());
  RnnOptions options = read_options(c, input.states.empty());
  Value x = options.time_major ? input.x : swapaxes(input.x, 0, 1), mask;
  RecurrentOutput out;
  for (const Cell& each : cells) {
    Call cell = each.call;
    refuse_training(c, cell.config);
    x = with_input_dropout(c, cell.config, x, true);
    CellRun run = each.kind.bind(cell, convert(x, cell.policy.compute));
    Values carries;
    for (size_t i = 0; i < each.kind.states; ++i) {
      Type type{cell.policy.compute, run.state};
      Value state = input.states.empty() ? full(c.graph, type, 0) : convert(input.states[out.states.size() + i], type.dtype);
      if (!(state.shape() == type.shape))
        c.config.invalid("initial state {} is {}, expected {}", out.states.size() + i, to_string(state.shape()), to_string(type.shape));
      carries.push_back(state);
    }
    if (input.mask) mask = step_mask(c, input.mask, options, run.state.rank() + 1);
    bool last = &each == &cells.back();
    Loop loop = run_loop(cell, run, carries, mask, options, options.return_sequences || !last);
    out.states.insert(out.states.end(), loop.states.begin(), loop.states.end());
    x = loop.sequence;
    if (!last) continue;
    if (mask && options.zero_output) zero_masked(loop, mask, options);
    out.output = loop.last;
    if (options.return_sequences) {
      out.output = options.time_major ? loop.sequence : swapaxes(loop.sequence, 0, 1);
      // Outputs come in the order in which the steps ran.
      if (options.go_backwards) out.output = flip(out.output, {options.time_major ? 0 : 1});
    }
  }
  return out;
}

Outputs recurrent_outputs(Call& c, const RecurrentInput& input, const RecurrentOutput& result) {
  bool sequences = c.config.flag("return_sequences", false);
  std::vector<Signal> out{{convert(result.output, c.policy.compute), sequences ? input.output_mask : Value{}}};
  if (c.config.flag("return_state", false))
    for (Value state : result.states) out.push_back({convert(state, c.policy.compute), {}});
  return out;
}

Cell own_cell(Call& c, const CellKind& kind, const std::string& name) {
  return {kind, Call(c.config, no_arguments, c.policy, true, c.lowering, c.scope().child("cell", name))};
}

namespace {

Outputs recurrent(Call& c, const CellKind& kind, const std::string& cell_name) {
  RecurrentInput input = recurrent_input(c);
  if (input.x.rank() != 3) c.config.invalid("takes [batch, time, features]; got {}", to_string(input.x.shape()));
  return recurrent_outputs(c, input, run_cells(c, {own_cell(c, kind, cell_name)}, input));
}

Outputs lstm(Call& c) { return recurrent(c, lstm_kind, "lstm_cell"); }
Outputs gru(Call& c) { return recurrent(c, gru_kind, "gru_cell"); }
Outputs simple_rnn(Call& c) { return recurrent(c, simple_rnn_kind, "simple_rnn_cell"); }

// The cells of a serialized cell: itself, or those of a stack, of which `reversed` is told whether it counts its states from the last.
void collect_cells(Call& c, const Json& json, Scope& scope, std::vector<Cell>& out, bool& reversed);

void collect_stack(Call& stack, std::vector<Cell>& out, bool& reversed) {
  const Json& list = stack.config.at("cells");
  if (!list.is_list() || list.size() == 0) stack.config.invalid("'cells' is a list of cells");
  reversed = stack.config.flag("reverse_state_order", false);
  LayerKeys keys("cells");
  for (const Json& item : list.items()) {
    if (!item.is_object()) stack.config.invalid("a cell is an object");
    bool inner_reversed = false;
    collect_cells(stack, item, stack.lowering.scope_of(item, stack.scope(), keys.next(item)), out, inner_reversed);
    if (inner_reversed) stack.config.unsupported("reverse_state_order in a stack inside a stack");
  }
}

void collect_cells(Call& c, const Json& json, Scope& scope, std::vector<Cell>& out, bool& reversed) {
  std::string_view name = resolve(json).row->name;
  Call call = c.lowering.open(json, scope, no_arguments);
  if (name == "StackedRNNCells") return collect_stack(call, out, reversed);
  const CellKind* kind = find_cell(name);
  if (kind == nullptr) c.config.unsupported("{} is not a recurrent cell that is known here", name);
  out.push_back({*kind, call});
}

// States between the order of the cells and the order of their last cell first.
Values reverse_states(const std::vector<Cell>& cells, const Values& states, bool from_reversed) {
  if (states.empty()) return states;
  std::vector<size_t> counts;
  for (const Cell& cell : cells) counts.push_back(cell.kind.states);
  if (from_reversed) std::reverse(counts.begin(), counts.end());
  Values out;
  size_t end = 0;
  for (size_t count : counts) {
    auto first = states.begin() + static_cast<std::ptrdiff_t>(end);
    out.insert(out.begin(), first, first + static_cast<std::ptrdiff_t>(count));
    end += count;
  }
  return out;
}

Outputs rnn(Call& c) {
  if (c.config.integer("num_constants", 0) != 0) c.config.unsupported("constants are for custom cells, whose code is not in the file");
  const Json& json = c.config.at("cell");
  std::vector<Cell> cells;
  bool reversed = false;
  collect_cells(c, json, c.lowering.scope_of(json, c.scope(), "cell"), cells, reversed);
  RecurrentInput input = recurrent_input(c);
  if (input.x.rank() != 3) c.config.invalid("takes [batch, time, features]; got {}", to_string(input.x.shape()));
  size_t expected = 0;
  for (const Cell& cell : cells) expected += cell.kind.states;
  if (reversed && input.states.size() == expected) input.states = reverse_states(cells, input.states, true);
  RecurrentOutput result = run_cells(c, cells, input);
  if (reversed) result.states = reverse_states(cells, result.states, false);
  return recurrent_outputs(c, input, result);
}

// Cells as layers of their own, one step: (x, states) -> output, states.
Outputs single_step(Call& c, const std::vector<Cell>& cells) {
  const Argument* given = c.arguments.find(1, "states");
  std::vector<Signal> states = given != nullptr ? given->tensors() : std::vector<Signal>{};
  Value x = c.x();
  if (x.rank() != 2) c.config.invalid("takes [batch, features]; got {}", to_string(x.shape()));
  std::vector<Signal> next;
  for (const Cell& each : cells) {
    Call cell = each.call;
    refuse_training(c, cell.config);
    x = with_input_dropout(c, cell.config, x, false);
    CellRun run = each.kind.bind(cell, expand_dims(convert(x, cell.policy.compute), {0}));
    Values own;
    for (size_t i = 0; i < each.kind.states; ++i) {
      if (next.size() + i >= states.size()) c.config.invalid("is called with {} states, needs more", states.size());
      own.push_back(convert(states[next.size() + i].value, cell.policy.compute));
    }
    Values after = run.step(cell, index_axis(run.projected, 0, 0), own, run.weights);
    for (Value state : after) next.push_back({state, {}});
    x = after[0];
  }
  next.insert(next.begin(), Signal{x, {}});
  return next;
}

template <const CellKind& kind>
Outputs cell_layer(Call& c) {
  return single_step(c, {{kind, c}});
}

Outputs stacked_cells_layer(Call& c) {
  std::vector<Cell> cells;
  bool reversed = false;
  collect_stack(c, cells, reversed);
  if (reversed) c.config.unsupported("reverse_state_order outside of an RNN layer");
  return single_step(c, cells);
}

constexpr std::string_view cell_call = "states training";
constexpr std::string_view stateful_note = "stateful: every run starts from zero states";

// unit_forget_bias initialises, implementation and use_cudnn choose between equal computations.
}  // namespace

Rows recurrent_layers() {
  static const LayerRow rows[] = {
      {"LSTM", lstm, Masking::own,
       "units activation recurrent_activation use_bias unit_forget_bias dropout recurrent_dropout return_sequences return_state "
       "go_backwards "
       "stateful unroll zero_output_for_mask time_major implementation use_cudnn",
       stateful_note, recurrent_call},
      {"GRU", gru, Masking::own,
       "units activation recurrent_activation use_bias dropout recurrent_dropout reset_after return_sequences return_state go_backwards "
       "stateful unroll zero_output_for_mask time_major implementation use_cudnn",
       stateful_note, recurrent_call},
      {"SimpleRNN", simple_rnn, Masking::own,
       "units activation use_bias dropout recurrent_dropout return_sequences return_state go_backwards stateful unroll "
       "zero_output_for_mask "
       "time_major implementation",
       stateful_note, recurrent_call},
      {"RNN", rnn, Masking::own,
       "cell return_sequences return_state go_backwards stateful unroll zero_output_for_mask time_major num_constants", stateful_note,
       recurrent_call},
      {"LSTMCell", cell_layer<lstm_kind>, Masking::drop,
       "units activation recurrent_activation use_bias unit_forget_bias dropout recurrent_dropout implementation", "", cell_call},
      {"GRUCell", cell_layer<gru_kind>, Masking::drop,
       "units activation recurrent_activation use_bias dropout recurrent_dropout reset_after implementation", "", cell_call},
      {"SimpleRNNCell", cell_layer<simple_rnn_kind>, Masking::drop, "units activation use_bias dropout recurrent_dropout implementation",
       "", cell_call},
      {"StackedRNNCells", stacked_cells_layer, Masking::drop, "cells reverse_state_order", "", cell_call},
  };
  return rows;
}

}  // namespace tutti::keras
