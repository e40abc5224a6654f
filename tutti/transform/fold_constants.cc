#include <algorithm>
#include <unordered_map>

#include "tutti/base/error.h"
#include "tutti/transform/passes.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

// A value may be this many times as large as what it is computed from (int8 weights become float32), or small; more than that in all, and
// the rest stays computed.
constexpr int64_t growth = 4, small_bytes = 1 << 20, budget_bytes = 16 << 20;
constexpr int stage = 64;  // ops

class Folding {
 public:
  Folding(const Graph& graph, const Evaluate& evaluate, FoldMemo& memo)
      : graph_(graph), evaluate_(evaluate), memo_(memo), facts_(graph.value_count()) {
    find_constants();
    choose();
  }

  Graph run() {
    Rebuild rebuild(graph_);
    for (const Node& node : graph_.nodes()) {
      const Facts* facts = node.results.size() == 1 ? &of(node.results[0]) : nullptr;
      if (node.body) {
        rebuild.copy(node, std::make_shared<const Graph>(fold_constants(*node.body, evaluate_, memo_)));
      } else if (facts == nullptr || !facts->constant || is_constant_leaf(node)) {
        rebuild.copy(node);
      } else if (facts->folded) {
        Tensor known = value(node.results[0]);  // in order, so that no evaluation asks for a long chain of others
        if (facts->needed) rebuild.map(node.results[0], rebuild.graph().constant(std::move(known)));
      } else if (facts->needed) {
        rebuild.copy(node);
      }
    }
    return rebuild.finish();
  }

 private:
  struct Facts {
    bool constant = false;
    bool needed = false;  // by a node that is not constant, by an output, or by a constant that is not folded
    bool folded = false;  // evaluated as a value of its own
    int64_t sources = 0;  // bytes of the leaves it is computed from
    int depth = 0;        // of the computation behind it
    int uses = 0;
    FoldMemo::Expression expression = -1;
  };
  Facts& of(ValueId id) { return facts_[at(id)]; }

  void find_constants() {
    for (const Node& node : graph_.nodes()) {
      if (node.results.size() != 1 || node.body || node.op == Op::all_reduce) continue;  // what others add is not known
      Facts& facts = of(node.results[0]);
      const Type& type = graph_.type(node.results[0]);
      if (is_constant_leaf(node)) {
        facts.constant = true;
        facts.sources = type.bytes();
        continue;
      }
      if (node.op == Op::parameter) continue;
      facts.constant = std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId id) { return of(id).constant; });
      if (!facts.constant) continue;
      std::vector<FoldMemo::Expression> operands;
      for (ValueId id : node.operands) {
        facts.sources = std::min<int64_t>(facts.sources + of(id).sources, int64_t{1} << 50);
        facts.depth = std::max(facts.depth, of(id).depth + 1);
        // The memo keeps the leaves it knows alive, so it only gets to know those that something is computed from.
        if (of(id).expression < 0) of(id).expression = memo_.leaf(graph_.maker(id).literal);
        operands.push_back(of(id).expression);
      }
      facts.expression = memo_.apply(node.op, node.attributes, type, operands);
    }
    std::vector<int> uses = count_uses(graph_);
    for (size_t i = 0; i < uses.size(); ++i) facts_[i].uses = uses[i];
  }

  // Larger than what it is computed from. Tables and masks of one shape are: the memo would collect them, so they are not put into it.
  bool grows(ValueId id) { return graph_.type(id).bytes() > growth * of(id).sources; }

  bool fits(const Node& node) {
    int64_t bytes = graph_.type(node.results[0]).bytes();
    // A broadcast costs a device nothing where it is read, and memory when it is a constant.
    if (node.op == Op::broadcast_in_dim) return false;
    if (!grows(node.results[0])) return true;
    return bytes <= small_bytes && bytes <= budget_;
  }

  // From the last node to the first, so that a value that does not fit asks for its operands.
  void choose() {
    for (const auto& output : graph_.outputs()) of(output.value).needed = true;
    for (const auto& update : graph_.updates()) of(update.next).needed = true;
    for (size_t n = graph_.nodes().size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      Facts* facts = node.results.size() == 1 ? &of(node.results[0]) : nullptr;
      bool constant = facts != nullptr && facts->constant;
      if (constant && !is_constant_leaf(node)) {
        // What several constants share is computed once; long chains are computed in stages.
        facts->folded = (facts->needed || facts->uses > 1 || facts->depth % stage == stage - 1) && fits(node);
        if (facts->folded && grows(node.results[0])) budget_ -= graph_.type(node.results[0]).bytes();
      }
      if (constant && (facts->folded || !facts->needed)) continue;
      for (ValueId id : node.operands) of(id).needed = true;
    }
  }

  Tensor value(ValueId id) {
    const Node& node = graph_.maker(id);
    if (is_constant_leaf(node)) return node.literal;
    const FoldMemo::Expression expression = of(id).expression;
    if (const Tensor* known = memo_.find(expression)) return *known;
    if (auto known = own_.find(expression); known != own_.end()) return known->second;
    Tensor out = node.op == Op::reshape && has_value(node.operands[0])
                     ? value(node.operands[0]).reshaped(graph_.type(id).shape)  // the same bytes
                     : computed(id);
    if (grows(id)) {
      own_.emplace(expression, out);
    } else {
      memo_.store(expression, out);
    }
    return out;
  }

  bool has_value(ValueId id) { return is_constant_leaf(graph_.maker(id)) || of(id).folded; }

  Tensor computed(ValueId id) {
    Graph work;
    std::unordered_map<ValueId, Value> made;
    Value result = express(id, work, made, true);
    work.output("value", result);
    std::vector<Tensor> out = evaluate_(work);
    if (out.size() != 1 || !(out[0].type() == graph_.type(id)))
      fail<InternalError>("fold", "evaluating {} did not give {}", name(graph_.maker(id).op), to_string(graph_.type(id)));
    return std::move(out[0]);
  }

  // The computation of a constant in a graph of its own, from values that exist already.
  Value express(ValueId id, Graph& work, std::unordered_map<ValueId, Value>& made, bool root) {
    if (auto found = made.find(id); found != made.end()) return found->second;
    const Node& node = graph_.maker(id);
    Value out;
    if (!root && has_value(id)) {
      out = work.constant(value(id));
    } else if (node.op == Op::iota) {
      out = work.iota(graph_.type(id), node.attributes.integer("dimension"));
    } else {
      std::vector<Value> operands;
      for (ValueId operand : node.operands) operands.push_back(express(operand, work, made, false));
      out = work.add(node.op, operands, node.attributes)[0];
    }
    made.emplace(id, out);
    return out;
  }

  const Graph& graph_;
  const Evaluate& evaluate_;
  FoldMemo& memo_;
  std::vector<Facts> facts_;
  std::unordered_map<FoldMemo::Expression, Tensor> own_;  // values that are not remembered
  int64_t budget_ = budget_bytes;
};

}  // namespace

Graph fold_constants(const Graph& graph, const Evaluate& evaluate, FoldMemo& memo) { return Folding(graph, evaluate, memo).run(); }

}  // namespace tutti
