// scan: the body is compiled once and run `length` times on an arena inside the node's workspace.
#include <cstring>
#include <memory>

#include "tutti/device/reference/sequence.h"

namespace tutti::reference {

namespace {

int64_t aligned(int64_t bytes) { return (bytes + Plan::alignment - 1) / Plan::alignment * Plan::alignment; }

class Scan {
 public:
  explicit Scan(const Node& node) : body_(std::make_shared<Sequence>(*node.body)) {
    const Graph& body = *node.body;
    carries_ = static_cast<size_t>(node.attributes.integer("carries"));
    slices_ = static_cast<size_t>(node.attributes.integer("slices"));
    length_ = node.attributes.integer("length");
    reverse_ = node.attributes.integer("reverse") != 0;
    for (const Node* parameter : body.parameters(Graph::Role::input))
      inputs_.push_back({parameter->results[0], body.type(parameter->results[0]).bytes(), 0});
    for (const auto& output : body.outputs()) outputs_.push_back({output.value, body.type(output.value).bytes(), 0});
    workspace_ = aligned(body_->arena_bytes());
    for (size_t i = 0; i < carries_; ++i) {
      outputs_[i].spare = workspace_;
      workspace_ += aligned(outputs_[i].bytes);
    }
  }

  int64_t workspace() const { return workspace_; }

  void operator()(const Pointers& p) {
    body_->place(p.workspace);
    for (size_t i = carries_ + slices_; i < inputs_.size(); ++i) body_->bind(inputs_[i].value, p.operands[i]);
    if (length_ == 0)
      for (size_t i = 0; i < carries_; ++i) copy(p.results[i], p.operands[i], outputs_[i].bytes);
    for (int64_t step = 0; step < length_; ++step) {
      int64_t at = reverse_ ? length_ - 1 - step : step;
      for (size_t i = 0; i < carries_; ++i) body_->bind(inputs_[i].value, step == 0 ? p.operands[i] : next_carry(p, i, step - 1));
      for (size_t i = carries_; i < carries_ + slices_; ++i) body_->bind(inputs_[i].value, p.operands[i] + at * inputs_[i].bytes);
      body_->run();
      for (size_t i = 0; i < outputs_.size(); ++i)
        copy(i < carries_ ? next_carry(p, i, step) : p.results[i] + at * outputs_[i].bytes, body_->value(outputs_[i].value),
             outputs_[i].bytes);
    }
  }

 private:
  struct Port {
    ValueId value;
    int64_t bytes, spare;
  };

  // Carries alternate between the result and a spare place, so that a body may hand one carry on as another; the last step writes the
  // result.
  std::byte* next_carry(const Pointers& p, size_t i, int64_t step) const {
    return (length_ - 1 - step) % 2 == 0 ? p.results[i] : p.workspace + outputs_[i].spare;
  }
  static void copy(std::byte* to, const std::byte* from, int64_t bytes) {
    if (bytes != 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  std::shared_ptr<Sequence> body_;  // shared: std::function copies what it holds
  size_t carries_, slices_;
  int64_t length_, workspace_ = 0;
  bool reverse_;
  std::vector<Port> inputs_, outputs_;
};

Kernel scan(const Graph&, const Node& node) {
  Scan scan(node);
  int64_t workspace = scan.workspace();
  return {std::move(scan), workspace};
}

constexpr KernelRow rows[] = {{Op::scan, scan}};

}  // namespace

std::span<const KernelRow> scan_kernels() { return rows; }

}  // namespace tutti::reference
