// The gradient of a scan: the scan again, which now saves what its body's gradient needs, and a scan that walks back over it. What weights
// get from each step is summed behind that walk where it can be: one product over all steps instead of one a step.
#include "tutti/base/error.h"
#include "tutti/graph/build.h"
#include "tutti/graph/gradient.h"

namespace tutti::gradient_rules {

namespace {

// A body with its gradient behind it.
struct Both {
  Graph graph;
  size_t forward = 0;                        // the nodes of the body itself
  std::vector<ValueId> parameters, outputs;  // of the body
  std::vector<ValueId> cotangents;           // parameters: by output, -1 where none comes
  std::vector<ValueId> gradients;            // by parameter, -1 where nothing flows
};

// `flows` says which outputs have a cotangent, `wanted` which parameters need one.
Both differentiate_body(const Graph& body, const std::vector<bool>& flows, const std::vector<bool>& wanted) {
  Graph graph = body.clone();
  std::vector<ValueId> parameters, asked, given;
  for (const Node* node : body.parameters(Graph::Role::input)) parameters.push_back(node->results[0]);
  for (size_t i = 0; i < parameters.size(); ++i)
    if (wanted[i]) asked.push_back(parameters[i]);
  std::vector<Seed> seeds;
  for (size_t i = 0; i < flows.size(); ++i) {
    const ValueId output = body.outputs()[i].value;
    given.push_back(flows[i] ? graph.input("cotangent" + std::to_string(i), body.type(output)).id() : -1);
    if (flows[i]) seeds.push_back({output, Value(&graph, given.back())});
  }
  std::vector<Replacement> replacements;
  const Cotangents found = backpropagate(graph, seeds, asked, replacements);
  Both out;
  Replaced replaced = replace(graph, replacements);
  const auto now = [&](ValueId id) { return id < 0 ? -1 : replaced.values[at(id)]; };
  size_t next = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value gradient = wanted[i] ? found[next++] : Value();
    out.gradients.push_back(gradient ? now(gradient.id()) : -1);
    out.parameters.push_back(now(parameters[i]));
  }
  for (const auto& output : body.outputs()) out.outputs.push_back(now(output.value));
  for (ValueId id : given) out.cotangents.push_back(now(id));
  out.forward = body.nodes().size();
  out.graph = std::move(replaced.graph);
  return out;
}

class ReverseScan {
 public:
  ReverseScan(const GradientNode& n, Both both, size_t carries, size_t slices);
  Cotangents run();

 private:
  // A value of each step with all of its steps, [length, ...]: an operand of the scan, saved by the forward scan, or stacked by the
  // reverse scan.
  struct Steps {
    enum class Where { operand, saved, stacked } where;
    size_t index;
  };
  // A part of the sum over all steps of a whole value's gradient.
  struct Part {
    Op op;  // dot_general or reduce behind the walk; add: summed up in a carry of it, number `carry`
    Attributes attributes;
    std::vector<Steps> of;
    size_t carry = 0;
  };

  const Node& producer(ValueId id) const { return both_.graph.nodes()[static_cast<size_t>(both_.graph.producer(id))]; }
  bool is_forward(ValueId id) const { return static_cast<size_t>(both_.graph.producer(id)) < both_.forward; }
  size_t parameter_index(ValueId id) const;  // of the body's, or how many there are
  bool has_steps(ValueId id) const { return !is_forward(id) || varies_[at(id)]; }
  Steps steps(ValueId id);
  void plan_sum(ValueId gradient, std::vector<Part>& parts);
  void plan_inside();
  std::vector<Value> save();  // adds the forward scan; gives what it saved
  Value add_up(const std::vector<Part>& parts, const std::vector<Value>& sums, const std::vector<Value>& saved,
               const std::vector<Value>& stacked) const;

  const GradientNode& n_;
  const Both both_;
  const size_t carries_, slices_;
  std::vector<bool> varies_;  // from step to step: values of the body itself
  std::vector<bool> inside_;  // values that the reverse body has
  std::vector<ValueId> saved_, stacked_, summed_;
};

ReverseScan::ReverseScan(const GradientNode& n, Both both, size_t carries, size_t slices)
    : n_(n), both_(std::move(both)), carries_(carries), slices_(slices), varies_(both_.graph.value_count()), inside_(varies_.size()) {
  for (size_t i = 0; i < carries + slices; ++i) varies_[at(both_.parameters[i])] = true;
  for (size_t k = 0; k < both_.forward; ++k) {
    bool any = false;
    for (ValueId id : both_.graph.nodes()[k].operands) any |= varies_[at(id)];
    for (ValueId id : both_.graph.nodes()[k].results) varies_[at(id)] = varies_[at(id)] || any;
  }
}

size_t ReverseScan::parameter_index(ValueId id) const {
  size_t i = 0;
  while (i < both_.parameters.size() && both_.parameters[i] != id) ++i;
  return i;
}

size_t index_in(std::vector<ValueId>& list, ValueId id) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] == id) return i;
  list.push_back(id);
  return list.size() - 1;
}

ReverseScan::Steps ReverseScan::steps(ValueId id) {
  if (!is_forward(id)) return {Steps::Where::stacked, index_in(stacked_, id)};
  const size_t parameter = parameter_index(id);
  if (parameter >= carries_ && parameter < carries_ + slices_) return {Steps::Where::operand, parameter};
  return {Steps::Where::saved, index_in(saved_, id)};
}

void ReverseScan::plan_sum(ValueId gradient, std::vector<Part>& parts) {
  const Node& node = producer(gradient);
  if (!is_forward(gradient) && node.op == Op::add) {
    for (ValueId id : node.operands) plan_sum(id, parts);
    return;
  }
  const bool sum = node.op == Op::reduce && node.attributes.text("kind") == "add" && has_steps(node.operands[0]);
  const bool product = node.op == Op::dot_general && has_steps(node.operands[0]) && has_steps(node.operands[1]);
  if (is_forward(gradient) || (!sum && !product)) {
    parts.push_back({Op::add, {}, {}, index_in(summed_, gradient)});
    return;
  }
  Part part{node.op, node.attributes, {}};
  for (ValueId id : node.operands) part.of.push_back(steps(id));
  parts.push_back(std::move(part));
}

// Marks what the reverse body has. What only depends on whole values, or repeats a smaller value, is computed again; the rest of the body's
// own values is saved.
void ReverseScan::plan_inside() {
  const auto need = [&](ValueId id) {
    if (id >= 0) inside_[at(id)] = true;
  };
  for (size_t i = 0; i < carries_ + slices_; ++i) need(both_.gradients[i]);
  for (const auto* list : {&stacked_, &summed_})
    for (ValueId id : *list) need(id);
  for (size_t k = both_.graph.nodes().size(); k-- > 0;) {
    const Node& node = both_.graph.nodes()[k];
    bool any = false;
    for (ValueId id : node.results) any |= inside_[at(id)];
    if (!any) continue;
    const bool again = k >= both_.forward || !varies_[at(node.results[0])] || node.op == Op::broadcast_in_dim || node.op == Op::reshape;
    if (again) {
      for (ValueId id : node.operands) need(id);
      continue;
    }
    for (ValueId id : node.results) {
      const size_t parameter = parameter_index(id);
      const bool is_slice = parameter >= carries_ && parameter < carries_ + slices_;
      if (inside_[at(id)] && !is_slice) index_in(saved_, id);
    }
  }
}

std::vector<Value> ReverseScan::save() {
  auto body = std::make_shared<Graph>();
  std::vector<Value> values(both_.graph.value_count());
  for (size_t k = 0; k < both_.forward; ++k) {
    const Node& node = both_.graph.nodes()[k];
    if (row(node.op).op_class == OpClass::leaf) {
      values[at(node.results[0])] = copy_leaf(*body, both_.graph, node);
      continue;
    }
    std::vector<Value> operands;
    for (ValueId id : node.operands) operands.push_back(values[at(id)]);
    const auto results = body->add(node.op, operands, node.attributes, node.body);
    for (size_t i = 0; i < results.size(); ++i) values[at(node.results[i])] = results[i];
  }
  for (size_t i = 0; i < both_.outputs.size(); ++i) body->output(n_.node.body->outputs()[i].name, values[at(both_.outputs[i])]);
  for (size_t i = 0; i < saved_.size(); ++i) body->output("saved" + std::to_string(i), values[at(saved_[i])]);
  const auto results = n_.graph.add(Op::scan, n_.operands, n_.node.attributes, std::move(body));
  n_.replacements.push_back({n_.index, n_.graph.nodes().size() - 1});
  return {results.begin() + static_cast<std::ptrdiff_t>(both_.outputs.size()), results.end()};
}

Value ReverseScan::add_up(const std::vector<Part>& parts, const std::vector<Value>& sums, const std::vector<Value>& saved,
                          const std::vector<Value>& stacked) const {
  const auto find = [&](const Steps& s) {
    return s.where == Steps::Where::operand ? n_.x(s.index) : s.where == Steps::Where::saved ? saved[s.index] : stacked[s.index];
  };
  const auto behind_steps = [](Ints axes, bool steps_too) {
    for (int64_t& axis : axes) ++axis;
    if (steps_too) axes.insert(axes.begin(), 0);
    return axes;
  };
  Value total;
  for (const Part& part : parts) {
    const Attributes& a = part.attributes;
    Value one;
    if (part.op == Op::add) {
      one = sums[part.carry];
    } else if (part.op == Op::reduce) {
      one = reduce(find(part.of[0]), "add", behind_steps(a.ints("dimensions"), true));
    } else {
      one = dot_general(find(part.of[0]), find(part.of[1]),
                        {behind_steps(a.ints("lhs_batch"), false), behind_steps(a.ints("rhs_batch"), false),
                         behind_steps(a.ints("lhs_contracting"), true), behind_steps(a.ints("rhs_contracting"), true)});
    }
    total = total ? total + one : one;
  }
  return total;
}

Cotangents ReverseScan::run() {
  std::vector<std::vector<Part>> parts(both_.parameters.size());
  for (size_t i = carries_ + slices_; i < both_.parameters.size(); ++i)
    if (both_.gradients[i] >= 0) plan_sum(both_.gradients[i], parts[i]);
  plan_inside();
  const std::vector<Value> saved = save();

  // What goes in: cotangents of carries and sums so far; cotangents, operands and saved values of each step; whole values.
  std::vector<Value> carries, slices, whole;
  std::vector<ValueId> inner_carries, inner_slices, inner_whole;
  std::vector<size_t> by_carry;
  for (size_t i = 0; i < carries_; ++i) {
    if (both_.cotangents[i] < 0) continue;
    carries.push_back(n_.cotangents[i] ? n_.cotangents[i] : full_like(n_.x(i), 0));
    inner_carries.push_back(both_.cotangents[i]);
    by_carry.push_back(i);
  }
  for (ValueId id : summed_) carries.push_back(full(n_.graph, both_.graph.type(id), 0));
  for (size_t i = carries_; i < both_.outputs.size(); ++i) {
    if (both_.cotangents[i] < 0) continue;
    slices.push_back(n_.cotangents[i]);
    inner_slices.push_back(both_.cotangents[i]);
  }
  for (size_t i = carries_; i < both_.parameters.size(); ++i) {
    if (!inside_[at(both_.parameters[i])]) continue;
    const bool sliced = i < carries_ + slices_;
    (sliced ? slices : whole).push_back(n_.x(i));
    (sliced ? inner_slices : inner_whole).push_back(both_.parameters[i]);
  }
  for (size_t i = 0; i < saved_.size(); ++i) {
    if (!inside_[at(saved_[i])]) continue;
    slices.push_back(saved[i]);
    inner_slices.push_back(saved_[i]);
  }

  const auto step = [&](Graph& body, const std::vector<Value>& c, const std::vector<Value>& s, const std::vector<Value>& w) {
    std::vector<Value> values(both_.graph.value_count());
    for (size_t i = 0; i < inner_carries.size(); ++i) values[at(inner_carries[i])] = c[i];
    for (size_t i = 0; i < inner_slices.size(); ++i) values[at(inner_slices[i])] = s[i];
    for (size_t i = 0; i < inner_whole.size(); ++i) values[at(inner_whole[i])] = w[i];
    for (const Node& node : both_.graph.nodes()) {
      bool missing = false;
      for (ValueId id : node.results) missing |= inside_[at(id)] && !values[at(id)];
      if (!missing) continue;
      if (row(node.op).op_class == OpClass::leaf) {
        values[at(node.results[0])] = copy_leaf(body, both_.graph, node);
        continue;
      }
      std::vector<Value> operands;
      for (ValueId id : node.operands) operands.push_back(values[at(id)]);
      const auto results = body.add(node.op, operands, node.attributes, node.body);
      for (size_t i = 0; i < results.size(); ++i) values[at(node.results[i])] = results[i];
    }
    ScanStep out;
    for (size_t i : by_carry) {
      const ValueId gradient = both_.gradients[i];
      out.carries.push_back(gradient >= 0 ? values[at(gradient)] : full(body, both_.graph.type(both_.parameters[i]), 0));
    }
    for (size_t i = 0; i < summed_.size(); ++i) out.carries.push_back(c[inner_carries.size() + i] + values[at(summed_[i])]);
    for (size_t i = carries_; i < carries_ + slices_; ++i)
      if (both_.gradients[i] >= 0) out.stacked.push_back(values[at(both_.gradients[i])]);
    for (ValueId id : stacked_) out.stacked.push_back(values[at(id)]);
    return out;
  };
  const Attributes& a = n_.node.attributes;
  const ScanResult walked = scan(carries, slices, whole, a.integer("length"), a.integer("reverse") == 0, step);

  Cotangents out(n_.operands.size());
  for (size_t i = 0; i < by_carry.size(); ++i) out[by_carry[i]] = walked.carries[i];
  size_t next = 0;
  for (size_t i = carries_; i < carries_ + slices_; ++i)
    if (both_.gradients[i] >= 0) out[i] = walked.stacked[next++];
  const std::vector<Value> stacked(walked.stacked.begin() + static_cast<std::ptrdiff_t>(next), walked.stacked.end());
  const std::vector<Value> sums(walked.carries.begin() + static_cast<std::ptrdiff_t>(by_carry.size()), walked.carries.end());
  for (size_t i = carries_ + slices_; i < both_.parameters.size(); ++i)
    if (!parts[i].empty()) out[i] = add_up(parts[i], sums, saved, stacked);
  return out;
}

}  // namespace

Cotangents scanned(const GradientNode& n) {
  const auto carries = static_cast<size_t>(n.node.attributes.integer("carries")),
             slices = static_cast<size_t>(n.node.attributes.integer("slices"));
  std::vector<bool> wanted = n.wanted, flows;
  for (size_t i = 0; i < carries; ++i) wanted[i] = is_float(n.x(i).dtype());
  for (Value cotangent : n.cotangents) flows.push_back(static_cast<bool>(cotangent));
  // A carry whose end nobody asks for still matters to the steps behind it.
  Both both;
  for (bool changed = true; changed;) {
    both = differentiate_body(*n.node.body, flows, wanted);
    changed = false;
    for (size_t i = 0; i < carries; ++i) {
      if (flows[i] || both.gradients[i] < 0) continue;
      flows[i] = changed = true;
    }
  }
  return ReverseScan(n, std::move(both), carries, slices).run();
}

}  // namespace tutti::gradient_rules
