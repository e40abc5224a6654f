#include <fmt/format.h>

#include <algorithm>

#include "tutti/graph/build.h"
#include "tutti/transform/passes.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

Ints shifted(Ints axes) {
  for (int64_t& axis : axes) ++axis;
  return axes;
}

Ints behind(int64_t first, const Ints& rest) {
  Ints out{first};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

// How a value of a body changes from step to step.
enum class Change : char {
  fixed,    // not at all: it depends on constants and whole values
  sliced,   // with the slices alone, through ops that can be done for all steps at once
  varying,  // with the carries too
};

// One scan: what can leave its body, and the scan without it.
class Loop {
 public:
  Loop(Rebuild& outside, const Node& node)
      : outside_(outside),
        node_(node),
        body_(*node.body),
        carries_(static_cast<size_t>(node.attributes.integer("carries"))),
        slices_(static_cast<size_t>(node.attributes.integer("slices"))),
        length_(node.attributes.integer("length")),
        changes_(body_.value_count(), Change::varying),
        worth_(body_.value_count()),
        fixed_(body_.value_count()),
        stacked_(body_.value_count()) {
    classify();
    choose();
  }

  bool changes() const { return !leaving_.empty(); }

  void rewrite() {
    std::vector<Value> operands = outside_.operands(node_), whole(operands.begin() + at(carries_ + slices_), operands.end());
    operands.resize(carries_ + slices_);
    for (ValueId id : leaving_)
      if (change(id) == Change::sliced) operands.push_back(all_steps(id));
    const auto slices = static_cast<int64_t>(operands.size() - carries_);
    operands.insert(operands.end(), whole.begin(), whole.end());
    for (ValueId id : leaving_)
      if (change(id) == Change::fixed) operands.push_back(before(id));
    Attributes attributes = node_.attributes;
    attributes.set("slices", slices);
    auto results = outside_.graph().add(Op::scan, operands, attributes, new_body());
    for (size_t i = 0; i < results.size(); ++i) outside_.map(node_.results[i], results[i]);
  }

 private:
  static std::ptrdiff_t at(size_t i) { return static_cast<std::ptrdiff_t>(i); }
  Change change(ValueId id) const { return changes_[at(id)]; }

  void classify() {
    size_t parameter = 0;
    for (const Node& node : body_.nodes()) {
      if (node.op == Op::parameter) {
        Value outer = outside_[node_.operands[parameter]];
        auto id = static_cast<size_t>(node.results[0]);
        if (parameter >= carries_ + slices_) {
          changes_[id] = Change::fixed;
          worth_[id] = true;  // what only constants make is left to constant folding
          fixed_[id] = outer;
        } else if (parameter >= carries_) {
          changes_[id] = Change::sliced;
          stacked_[id] = outer;
        }
        ++parameter;
      } else if (node.results.size() == 1 && !node.body) {
        Change change = change_of(node);
        changes_[static_cast<size_t>(node.results[0])] = change;
        bool worth = change == Change::sliced && (node.op == Op::dot_general || node.op == Op::convolution);
        for (ValueId id : node.operands) worth |= this->change(id) == change && worth_[at(id)];
        worth_[static_cast<size_t>(node.results[0])] = worth;
      }
    }
  }

  Change change_of(const Node& node) const {
    Change most = Change::fixed;
    for (ValueId id : node.operands) most = std::max(most, change(id));
    if (most != Change::sliced) return most;
    switch (row(node.op).op_class) {
      case OpClass::unary:
      case OpClass::binary:
      case OpClass::ternary: return Change::sliced;
      default: break;
    }
    switch (node.op) {
      case Op::reshape:
      case Op::broadcast_in_dim:
      case Op::transpose:
      case Op::slice:
      case Op::reduce: return Change::sliced;
      case Op::convolution: return change(node.operands[1]) == Change::fixed ? Change::sliced : Change::varying;
      case Op::dot_general:
        return change(node.operands[1]) == Change::fixed && node.attributes.ints("lhs_batch").empty() ? Change::sliced : Change::varying;
      default: return Change::varying;
    }
  }

  // Marks what stays behind and reads something that can leave. Stretching broadcasts stay with their readers.
  void choose() {
    std::vector<char> read(body_.value_count());
    for (const auto& output : body_.outputs()) read[static_cast<size_t>(output.value)] = true;
    for (size_t n = body_.nodes().size(); n-- > 0;) {
      const Node& node = body_.nodes()[n];
      const bool single = node.results.size() == 1;
      bool stays = !single || leaves_as(node) == Leaving::never;
      if (single && !stays && read[static_cast<size_t>(node.results[0])]) {
        if (leaves_as(node) == Leaving::here) leaving_.push_back(node.results[0]);
        stays = leaves_as(node) == Leaving::through_operands;
      }
      if (stays)
        for (ValueId id : node.operands) read[at(id)] = true;
    }
    std::reverse(leaving_.begin(), leaving_.end());
  }

  enum class Leaving { never, here, through_operands };
  Leaving leaves_as(const Node& node) const {
    ValueId id = node.results[0];
    if (row(node.op).op_class == OpClass::leaf || change(id) == Change::varying || !worth_[at(id)]) return Leaving::never;
    bool stretches = node.op == Op::broadcast_in_dim && body_.type(id).bytes() > body_.type(node.operands[0]).bytes();
    return stretches || node.op == Op::reshape ? Leaving::through_operands : Leaving::here;
  }

  // A fixed value, made before the loop.
  Value before(ValueId id) {
    Value& known = fixed_[at(id)];
    if (known) return known;
    const Node& node = body_.maker(id);
    if (node.op == Op::constant) return known = outside_.graph().constant(node.literal);
    if (node.op == Op::iota) return known = outside_.graph().iota(body_.type(id), node.attributes.integer("dimension"));
    std::vector<Value> operands;
    for (ValueId operand : node.operands) operands.push_back(before(operand));
    return known = outside_.graph().add(node.op, operands, node.attributes)[0];
  }

  // A value for all steps at once, made before the loop: [length, its shape...].
  Value all_steps(ValueId id) {
    Value& known = stacked_[at(id)];
    if (known) return known;
    const Shape& shape = body_.type(id).shape;
    const Ints extents = behind(length_, shape.extents());
    if (change(id) == Change::fixed) {
      Ints dimensions(static_cast<size_t>(shape.rank()));
      for (size_t i = 0; i < dimensions.size(); ++i) dimensions[i] = static_cast<int64_t>(i) + 1;
      return known = broadcast_in_dim(before(id), extents, dimensions);
    }
    const Node& node = body_.maker(id);
    const Attributes& a = node.attributes;
    Graph& graph = outside_.graph();
    auto with = [&](const Attributes& attributes) { return graph.add(node.op, {all_steps(node.operands[0])}, attributes)[0]; };
    switch (node.op) {
      case Op::reshape: return known = with({{"shape", extents}});
      case Op::broadcast_in_dim: return known = with({{"shape", extents}, {"dimensions", behind(0, shifted(a.ints("dimensions")))}});
      case Op::transpose: return known = with({{"permutation", behind(0, shifted(a.ints("permutation")))}});
      case Op::reduce: return known = with({{"kind", a.text("kind")}, {"dimensions", shifted(a.ints("dimensions"))}});
      case Op::slice:
        return known = with({{"start", behind(0, a.ints("start"))},
                             {"limit", behind(length_, a.ints("limit"))},
                             {"strides", behind(1, a.ints("strides"))}});
      case Op::dot_general: {
        Attributes attributes = a;
        attributes.set("lhs_contracting", shifted(a.ints("lhs_contracting")));
        return known = graph.add(node.op, {all_steps(node.operands[0]), before(node.operands[1])}, attributes)[0];
      }
      case Op::convolution: {  // the steps join the batch
        Value input = all_steps(node.operands[0]);
        Ints joined(input.shape().begin() + 1, input.shape().end());
        joined[0] *= length_;
        Value out = graph.add(node.op, {reshape(input, joined), before(node.operands[1])}, a)[0];
        return known = reshape(out, extents);
      }
      default: break;
    }
    std::vector<Value> operands;
    for (ValueId operand : node.operands) operands.push_back(all_steps(operand));
    return known = graph.add(node.op, operands, a)[0];
  }

  std::shared_ptr<const Graph> new_body() {
    Rebuild rebuild(body_);
    auto declare = [&](Change wanted, const char* prefix) {
      for (ValueId id : leaving_)
        if (change(id) == wanted) rebuild.map(id, rebuild.graph().input(fmt::format("{}{}", prefix, id), body_.type(id)));
    };
    std::vector<const Node*> parameters = body_.parameters(Graph::Role::input);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (i == carries_ + slices_) declare(Change::sliced, "sliced");
      rebuild.copy(*parameters[i]);
    }
    if (parameters.size() == carries_ + slices_) declare(Change::sliced, "sliced");
    declare(Change::fixed, "fixed");
    for (const Node& node : body_.nodes())
      if (node.op != Op::parameter && (node.results.size() != 1 || !rebuild[node.results[0]])) rebuild.copy(node);
    return std::make_shared<const Graph>(rebuild.finish());
  }

  Rebuild& outside_;
  const Node& node_;
  const Graph& body_;
  const size_t carries_, slices_;
  const int64_t length_;
  std::vector<Change> changes_;
  std::vector<char> worth_;             // fixed: depends on a whole value; sliced: has a product on the way
  std::vector<Value> fixed_, stacked_;  // what was made outside, by value of the body
  std::vector<ValueId> leaving_;
};

}  // namespace

Graph hoist_from_scans(const Graph& graph) {
  return rewrite_scans(graph, hoist_from_scans, [](Rebuild& rebuild, const Node& node) {
    Loop loop(rebuild, node);
    if (loop.changes()) {
      loop.rewrite();
    } else {
      rebuild.copy(node);
    }
  });
}

}  // namespace tutti
