#include "tutti/device/scan.h"

#include <memory>

#include "tutti/device/bytes.h"
#include "tutti/device/sequence.h"

namespace tutti {

namespace {

class Scan {
 public:
  Scan(const Node& node, std::vector<Step> steps) : body_(std::make_shared<const Sequence>(*node.body, std::move(steps))) {
    const Graph& body = *node.body;
    carries_ = static_cast<size_t>(node.attributes.integer("carries"));
    slices_ = static_cast<size_t>(node.attributes.integer("slices"));
    length_ = node.attributes.integer("length");
    reverse_ = node.attributes.integer("reverse") != 0;
    for (const Node* parameter : body.parameters(Graph::Role::input))
      inputs_.push_back({parameter->results[0], body.type(parameter->results[0]).bytes()});
    for (const auto& [value, direct] : body_->output_ports(body)) outputs_.push_back({value, body.type(value).bytes(), direct});
    workspace_ = Plan::aligned(body_->frame_bytes());
    for (size_t i = 0; i < carries_; ++i) {
      outputs_[i].spare = workspace_;
      workspace_ += Plan::aligned(outputs_[i].bytes);
    }
  }

  int64_t workspace() const { return workspace_; }
  const std::shared_ptr<const Sequence>& body() const { return body_; }

  // `run_body` runs the body once, in this frame, for the turn at hand.
  template <class RunBody>
  void run(const Pointers& p, const RunBody& run_body) const {
    std::byte* frame = p.workspace;
    body_->place(frame);
    for (size_t i = carries_ + slices_; i < inputs_.size(); ++i) body_->bind(frame, inputs_[i].value, p.operands[i]);
    if (length_ == 0)
      for (size_t i = 0; i < carries_; ++i) copy_bytes(p.results[i], p.operands[i], outputs_[i].bytes);
    for (int64_t step = 0; step < length_; ++step) {
      int64_t at = reverse_ ? length_ - 1 - step : step;
      for (size_t i = 0; i < carries_; ++i) body_->bind(frame, inputs_[i].value, step == 0 ? p.operands[i] : next_carry(p, i, step - 1));
      for (size_t i = carries_; i < carries_ + slices_; ++i) body_->bind(frame, inputs_[i].value, p.operands[i] + at * inputs_[i].bytes);
      auto place = [&](size_t i) { return i < carries_ ? next_carry(p, i, step) : p.results[i] + at * outputs_[i].bytes; };
      for (size_t i = 0; i < outputs_.size(); ++i)
        if (outputs_[i].direct) body_->bind(frame, outputs_[i].value, place(i));
      run_body(frame, step);
      for (size_t i = 0; i < outputs_.size(); ++i)
        if (!outputs_[i].direct) copy_bytes(place(i), body_->value(frame, outputs_[i].value), outputs_[i].bytes);
    }
  }

 private:
  struct Port {
    ValueId value;
    int64_t bytes;
    bool direct = false;  // an output that the body computes where it belongs
    int64_t spare = 0;
  };

  // Carries alternate between the result and a spare place, so that a body may hand one carry on as another; the last step writes the
  // result.
  std::byte* next_carry(const Pointers& p, size_t i, int64_t step) const {
    return (length_ - 1 - step) % 2 == 0 ? p.results[i] : p.workspace + outputs_[i].spare;
  }

  std::shared_ptr<const Sequence> body_;
  size_t carries_, slices_;
  int64_t length_, workspace_ = 0;
  bool reverse_;
  std::vector<Port> inputs_, outputs_;
};

}  // namespace

Kernel make_scan(const Node& node, std::vector<Step> body) {
  auto scan = std::make_shared<const Scan>(node, std::move(body));  // shared: std::function copies what it holds
  const Sequence& sequence = *scan->body();
  Kernel kernel;
  kernel.run = [scan, &sequence](const Pointers& p) { scan->run(p, [&](std::byte* frame, int64_t turn) { sequence.run(frame, turn); }); };
  kernel.run_timed = [scan, &sequence](const Pointers& p, std::span<double> seconds) {
    scan->run(p, [&](std::byte* frame, int64_t turn) { sequence.run_timed(frame, seconds, turn); });
  };
  kernel.workspace = scan->workspace();
  kernel.bodies.push_back({node.body, scan->body(), node.attributes.integer("length")});
  return kernel;
}

}  // namespace tutti
