#include "tutti/device/reference/reference.h"

#include <cstring>

#include "tutti/base/error.h"
#include "tutti/device/host.h"
#include "tutti/device/reference/sequence.h"

namespace tutti {

namespace {

using reference::Sequence;

class ReferenceProgram : public Program {
 public:
  explicit ReferenceProgram(const Graph& graph) : Program(graph), sequence_(graph) {
    stats_.peak_memory_bytes = sequence_.arena_bytes();
    take_parameters(graph);
    plan_updates(graph);
    int64_t bytes = sequence_.arena_bytes() + state_bytes_ + staged_bytes_;
    require_memory(bytes, fmt::format("a program with {} bytes of weights", stats_.weight_bytes));
    arena_ = Tensor(DType::u8, {sequence_.arena_bytes()});
    staging_ = Tensor(DType::u8, {staged_bytes_});
    sequence_.place(arena_.bytes().data());
    for (auto& state : states_) {
      Tensor own(state.tensor.type());
      copy(own.bytes().data(), state.tensor.bytes().data(), state.tensor.type().bytes());
      state.tensor = std::move(own);
      sequence_.bind(state.value, state.tensor.bytes().data());
    }
  }

  void run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    check_arguments(inputs, outputs);
    for (size_t i = 0; i < inputs.size(); ++i) sequence_.bind(inputs_[i], inputs[i]->host().data());
    sequence_.run();
    for (size_t i = 0; i < outputs.size(); ++i) copy(outputs[i]->host().data(), sequence_.value(outputs_[i]), outputs[i]->type().bytes());
    for (const auto& update : updates_)
      if (update.staged) copy(staging_.bytes().data() + update.stage, sequence_.value(update.next), update.bytes);
    for (const auto& update : updates_)
      copy(sequence_.value(update.state), update.staged ? staging_.bytes().data() + update.stage : sequence_.value(update.next),
           update.bytes);
  }

 private:
  struct State {
    ValueId value;
    Tensor tensor;  // the program's own copy
  };
  struct Update {
    ValueId state, next;
    int64_t bytes, stage;
    bool staged;
  };

  static void copy(std::byte* to, const std::byte* from, int64_t bytes) {
    if (bytes != 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  void take_parameters(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      if (node.op != Op::parameter) continue;
      ValueId id = node.results[0];
      if (role(node) == Graph::Role::input) {
        inputs_.push_back(id);
        continue;
      }
      if (node.literal.empty()) fail<InvalidArgument>("reference", "{} '{}' has no value", name(role(node)), node.attributes.text("name"));
      if (role(node) == Graph::Role::weight) {
        weights_.push_back(node.literal);
        sequence_.bind(id, weights_.back().bytes().data());
      } else {
        states_.push_back({id, node.literal});
        state_bytes_ += node.literal.type().bytes();
      }
    }
    for (const auto& output : graph.outputs()) outputs_.push_back(output.value);
  }

  // A new value that lies in a state's own bytes (a state handed on to another) must be read before any state is written.
  void plan_updates(const Graph& graph) {
    for (const auto& update : graph.updates()) {
      const Node& source = graph.nodes()[static_cast<size_t>(graph.producer(sequence_.root(update.next)))];
      bool staged = source.op == Op::parameter && role(source) == Graph::Role::state;
      int64_t bytes = graph.type(update.next).bytes();
      updates_.push_back({update.state, update.next, bytes, staged_bytes_, staged});
      if (staged) staged_bytes_ += bytes;
    }
  }

  Sequence sequence_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<Tensor> weights_;
  std::vector<State> states_;
  std::vector<Update> updates_;
  int64_t state_bytes_ = 0, staged_bytes_ = 0;
  Tensor arena_, staging_;
};

class ReferenceDevice : public HostDevice {
 public:
  std::string name() const override { return "reference"; }
  std::string description() const override { return "plain loops, accumulating in double: the oracle of the other devices"; }
  std::optional<std::string> refuses(const Graph&, const Node&) const override { return {}; }
  std::unique_ptr<Program> compile(const Graph& graph) override {
    verify(graph);
    return std::make_unique<ReferenceProgram>(graph);
  }
};

}  // namespace

std::unique_ptr<Device> make_reference_device() { return std::make_unique<ReferenceDevice>(); }

}  // namespace tutti
