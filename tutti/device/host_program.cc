#include "tutti/device/host_program.h"

#include <algorithm>
#include <set>

#include "tutti/base/error.h"
#include "tutti/device/bytes.h"
#include "tutti/device/host.h"

namespace tutti {

namespace {

bool is_input(std::span<Buffer* const> inputs, Buffer& output) {
  for (Buffer* input : inputs)
    if (input->host().data() == output.host().data()) return true;
  return false;
}

}  // namespace

// What contexts share.
struct HostProgram::Code {
  struct Update {
    ValueId state, next;
    int64_t bytes, stage;
    bool staged, trades;  // trades: a step computes it, so that it can be made elsewhere
    bool in_place;        // the step that computes it is the last to read the state, and writes over it
  };

  Sequence sequence;
  std::vector<ValueId> inputs;
  std::vector<Sequence::Port> outputs;
  std::vector<BoundTensor> weights, states;
  std::vector<std::string> state_names;
  std::vector<Update> updates;
  std::vector<std::pair<size_t, size_t>> ready;  // the step that computes an output where it is wanted, and which
  int64_t state_bytes = 0, staged_bytes = 0, traded_bytes = 0;

  Code(const Graph& graph, std::vector<Step> steps, std::string_view device) : sequence(graph, std::move(steps)) {
    take_parameters(graph, device);
    outputs = sequence.output_ports(graph);
    for (size_t s = 0; s < sequence.steps().size(); ++s)
      for (size_t i = 0; i < outputs.size(); ++i) {
        const auto& results = sequence.steps()[s].results;
        if (outputs[i].direct && std::find(results.begin(), results.end(), outputs[i].value) != results.end()) ready.emplace_back(s, i);
      }
    plan_updates(graph);
  }

  void take_parameters(const Graph& graph, std::string_view device) {
    for (const auto& node : graph.nodes()) {
      if (node.op != Op::parameter) continue;
      ValueId id = node.results[0];
      if (role(node) == Graph::Role::input) {
        inputs.push_back(id);
        continue;
      }
      if (node.literal.empty())
        fail<InvalidArgument>(std::string(device), "{} '{}' has no value", name(role(node)), node.attributes.text("name"));
      bool weight = role(node) == Graph::Role::weight;
      (weight ? weights : states).push_back({id, node.literal});
      if (weight) continue;
      state_bytes += node.literal.type().bytes();
      state_names.push_back(node.attributes.text("name"));
    }
  }

  bool may_lie_on(ValueId next, ValueId state, const Graph& graph) const {
    const auto is_state = [&](ValueId id) { return sequence.root(id) == state; };
    for (const auto& [value, direct] : outputs)
      if (is_state(value) || sequence.root(value) == next) return false;
    for (const auto& other : graph.updates())
      if (is_state(other.next)) return false;
    const auto steps = sequence.steps();
    const auto makes = [&](const Step& step) { return std::find(step.results.begin(), step.results.end(), next) != step.results.end(); };
    const auto made = std::find_if(steps.begin(), steps.end(), makes);
    if (made == steps.end() || std::count_if(made->operands.begin(), made->operands.end(), is_state) != 1) return false;
    for (auto later = made + 1; later != steps.end(); ++later)
      if (std::any_of(later->operands.begin(), later->operands.end(), is_state)) return false;
    const auto& over = made->kernel.over;
    return std::any_of(over.begin(), over.end(),
                       [&](const ResultOver& one) { return made->results[one.result] == next && is_state(made->operands[one.operand]); });
  }

  // A new value that lies in a state's own bytes (a state handed on to another) must be read before any state is written.
  void plan_updates(const Graph& graph) {
    std::set<ValueId> taken;
    for (const auto& update : graph.updates()) {
      const ValueId root = sequence.root(update.next);
      const Node& source = graph.maker(root);
      bool staged = source.op == Op::parameter && role(source) == Graph::Role::state;
      int64_t bytes = graph.type(update.next).bytes();
      const bool computed = sequence.plan().offset[at(root)] != Plan::outside && graph.type(root).bytes() == bytes && bytes > 0;
      const bool in_place = computed && !taken.contains(root) && may_lie_on(root, update.state, graph);
      updates.push_back({update.state, update.next, bytes, staged_bytes, staged, computed && taken.insert(root).second, in_place});
      if (updates.back().trades && !in_place) traded_bytes += bytes;
      if (staged) staged_bytes += bytes;
    }
  }
};

HostProgram::HostProgram(const Graph& graph, std::vector<Step> steps, std::string_view device, StateBuffers* states)
    : Program(graph), code_(std::make_shared<const Code>(graph, std::move(steps), device)) {
  stats_.kernels = code_->sequence.launches();
  stats_.peak_memory_bytes = code_->sequence.plan().arena_bytes;
  make_frame(states);
}

HostProgram::HostProgram(const Program& types, std::shared_ptr<const Code> code, StateBuffers* states)
    : Program(types), code_(std::move(code)) {
  make_frame(states);
}

std::unique_ptr<Program> HostProgram::context(StateBuffers* states) const {
  return std::unique_ptr<Program>(new HostProgram(*this, code_, states));
}

void HostProgram::make_frame(StateBuffers* shared) {
  const Sequence& sequence = code_->sequence;
  require_memory(sequence.frame_bytes() + code_->state_bytes + code_->staged_bytes + code_->traded_bytes,
                 fmt::format("a program with {} bytes of weights", stats_.weight_bytes));
  frame_ = Tensor(DType::u8, {sequence.frame_bytes()});
  staging_ = Tensor(DType::u8, {code_->staged_bytes});
  std::byte* frame = frame_.bytes().data();
  sequence.place(frame);
  for (const auto& weight : code_->weights) sequence.bind(frame, weight.value, weight.tensor.bytes().data());
  for (size_t i = 0; i < code_->states.size(); ++i) {
    const auto& [value, initial] = code_->states[i];
    std::shared_ptr<Buffer> own;
    if (shared != nullptr) own = (*shared)[code_->state_names[i]];
    if (own == nullptr) {
      own = std::make_shared<HostBuffer>(initial.type());
      copy_bytes(own->host().data(), initial.bytes().data(), initial.type().bytes());
      if (shared != nullptr) (*shared)[code_->state_names[i]] = own;
    } else if (!(own->type() == initial.type())) {
      fail<InvalidArgument>("device", "state '{}' is {}; shared as {}", code_->state_names[i], to_string(initial.type()),
                            to_string(own->type()));
    }
    sequence.bind(frame, value, own->host().data());
    states_.push_back(std::move(own));
  }
  for (const auto& update : code_->updates) {
    if (!update.trades) {
      traded_.push_back(false);
      continue;
    }
    const auto state = std::find_if(code_->states.begin(), code_->states.end(), [&](const auto& one) { return one.value == update.state; });
    const auto index = static_cast<size_t>(state - code_->states.begin());
    if (update.in_place) {
      traded_.push_back(true);
      in_place_.push_back({sequence.root(update.next), index});
      continue;
    }
    auto* buffer = dynamic_cast<HostBuffer*>(states_[index].get());
    traded_.push_back(buffer != nullptr);
    if (buffer == nullptr) continue;  // a part of another buffer: its bytes stay where they are
    spares_.push_back({sequence.root(update.next), index, buffer, Tensor(buffer->type())});
    sequence.bind(frame, spares_.back().next, spares_.back().tensor.bytes().data());
  }
}

void HostProgram::run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) {
  bind_arguments(inputs, outputs);
  code_->sequence.run_some(frame_.bytes().data(), 0, code_->sequence.steps().size(), runs_++, collective_);
  finish(outputs);
}

void HostProgram::run_telling(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, const Ready& ready,
                              std::span<double> seconds) {
  bind_arguments(inputs, outputs);
  const Sequence& sequence = code_->sequence;
  std::byte* frame = frame_.bytes().data();
  size_t done = 0;
  const auto run_until = [&](size_t end) {
    if (seconds.empty())
      sequence.run_some(frame, done, end, runs_, collective_);
    else
      sequence.run_some_timed(frame, done, end, seconds, runs_, collective_);
    done = end;
  };
  std::vector<bool> told(outputs.size());
  for (const auto& [step, output] : code_->ready) {
    const auto& [value, direct] = code_->outputs[output];
    if (sequence.value(frame, value) != outputs[output]->host().data()) continue;
    run_until(step + 1);
    told[output] = true;
    ready(output);
  }
  run_until(sequence.steps().size());
  ++runs_;
  finish(outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!told[i]) ready(i);
}

void HostProgram::run_timed(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, std::span<double> seconds) {
  bind_arguments(inputs, outputs);
  code_->sequence.run_timed(frame_.bytes().data(), seconds, runs_++, collective_);
  finish(outputs);
}

void HostProgram::bind_arguments(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) {
  check_arguments(inputs, outputs);
  const Sequence& sequence = code_->sequence;
  std::byte* frame = frame_.bytes().data();
  auto bind = [&](ValueId id, std::byte* data) {
    if (sequence.value(frame, id) != data) sequence.bind(frame, id, data);
  };
  for (size_t i = 0; i < states_.size(); ++i) bind(code_->states[i].value, states_[i]->host().data());  // others may have traded them
  for (const auto& [next, state] : in_place_) bind(next, states_[state]->host().data());
  for (size_t i = 0; i < inputs.size(); ++i) bind(code_->inputs[i], inputs[i]->host().data());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [value, direct] = code_->outputs[i];
    if (!direct) continue;
    bind(value, is_input(inputs, *outputs[i]) ? frame + sequence.plan().offset[at(value)] : outputs[i]->host().data());
  }
}

void HostProgram::finish(std::span<Buffer* const> outputs) {
  const Sequence& sequence = code_->sequence;
  std::byte* frame = frame_.bytes().data();
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::byte *to = outputs[i]->host().data(), *from = sequence.value(frame, code_->outputs[i].value);
    if (to != from) copy_bytes(to, from, outputs[i]->type().bytes());
  }
  for (const auto& update : code_->updates)
    if (update.staged) copy_bytes(staging_.bytes().data() + update.stage, sequence.value(frame, update.next), update.bytes);
  for (size_t i = 0; i < traded_.size(); ++i)
    if (const auto& update = code_->updates[i]; !traded_[i])
      copy_bytes(sequence.value(frame, update.state),
                 update.staged ? staging_.bytes().data() + update.stage : sequence.value(frame, update.next), update.bytes);
  for (Spare& spare : spares_) {
    spare.buffer->swap(spare.tensor);
    sequence.bind(frame, code_->states[spare.state].value, spare.buffer->host().data());
    sequence.bind(frame, spare.next, spare.tensor.bytes().data());
  }
}

}  // namespace tutti
