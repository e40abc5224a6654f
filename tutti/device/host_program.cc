#include "tutti/device/host_program.h"

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
    bool staged;
  };

  Sequence sequence;
  std::vector<ValueId> inputs;
  std::vector<Sequence::Port> outputs;
  std::vector<BoundTensor> weights, states;
  std::vector<Update> updates;
  int64_t state_bytes = 0, staged_bytes = 0;

  Code(const Graph& graph, std::vector<Step> steps, std::string_view device) : sequence(graph, std::move(steps)) {
    take_parameters(graph, device);
    outputs = sequence.output_ports(graph);
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
      if (!weight) state_bytes += node.literal.type().bytes();
    }
  }

  // A new value that lies in a state's own bytes (a state handed on to another) must be read before any state is written.
  void plan_updates(const Graph& graph) {
    for (const auto& update : graph.updates()) {
      const Node& source = graph.nodes()[static_cast<size_t>(graph.producer(sequence.root(update.next)))];
      bool staged = source.op == Op::parameter && role(source) == Graph::Role::state;
      int64_t bytes = graph.type(update.next).bytes();
      updates.push_back({update.state, update.next, bytes, staged_bytes, staged});
      if (staged) staged_bytes += bytes;
    }
  }
};

HostProgram::HostProgram(const Graph& graph, std::vector<Step> steps, std::string_view device)
    : Program(graph), code_(std::make_shared<const Code>(graph, std::move(steps), device)) {
  stats_.kernels = code_->sequence.launches();
  stats_.peak_memory_bytes = code_->sequence.plan().arena_bytes;
  make_frame();
}

HostProgram::HostProgram(const Program& types, std::shared_ptr<const Code> code) : Program(types), code_(std::move(code)) { make_frame(); }

std::unique_ptr<Program> HostProgram::context() const { return std::unique_ptr<Program>(new HostProgram(*this, code_)); }

void HostProgram::make_frame() {
  const Sequence& sequence = code_->sequence;
  require_memory(sequence.frame_bytes() + code_->state_bytes + code_->staged_bytes,
                 fmt::format("a program with {} bytes of weights", stats_.weight_bytes));
  frame_ = Tensor(DType::u8, {sequence.frame_bytes()});
  staging_ = Tensor(DType::u8, {code_->staged_bytes});
  std::byte* frame = frame_.bytes().data();
  sequence.place(frame);
  for (const auto& weight : code_->weights) sequence.bind(frame, weight.value, weight.tensor.bytes().data());
  for (const auto& state : code_->states) {
    Tensor own(state.tensor.type());
    copy_bytes(own.bytes().data(), state.tensor.bytes().data(), own.type().bytes());
    sequence.bind(frame, state.value, own.bytes().data());
    states_.push_back({state.value, std::move(own)});
  }
}

void HostProgram::run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) {
  bind_arguments(inputs, outputs);
  code_->sequence.run(frame_.bytes().data());
  finish(outputs);
}

void HostProgram::run_timed(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, std::span<double> seconds) {
  bind_arguments(inputs, outputs);
  code_->sequence.run_timed(frame_.bytes().data(), seconds);
  finish(outputs);
}

void HostProgram::bind_arguments(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) {
  check_arguments(inputs, outputs);
  const Sequence& sequence = code_->sequence;
  std::byte* frame = frame_.bytes().data();
  auto bind = [&](ValueId id, std::byte* data) {
    if (sequence.value(frame, id) != data) sequence.bind(frame, id, data);
  };
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
  for (const auto& update : code_->updates)
    copy_bytes(sequence.value(frame, update.state),
               update.staged ? staging_.bytes().data() + update.stage : sequence.value(frame, update.next), update.bytes);
}

}  // namespace tutti
