#include "tutti/transform/recompute.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "tutti/graph/build.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

// Bytes of another value, or none.
bool is_alias(const Node& node) { return node.op == Op::reshape || node.op == Op::bitcast_convert; }
bool is_leaf(const Node& node) { return row(node.op).op_class == OpClass::leaf; }

// A dtype of as many bits.
std::optional<DType> other_dtype(DType dtype) {
  switch (byte_size(dtype)) {
    case 8: return dtype == DType::u64 ? DType::f64 : DType::u64;
    case 4: return dtype == DType::u32 ? DType::f32 : DType::u32;
    case 2: return dtype == DType::f16 ? DType::bf16 : DType::f16;
    default: return std::nullopt;
  }
}

// Where the forward pass is cut: a segment is the nodes from one cut to the next.
using Cuts = std::vector<size_t>;

class Recomputation {
 public:
  explicit Recomputation(const Graph& graph) : graph_(graph), made_by_(graph.value_count()), read_behind_(graph.value_count()) {
    for (size_t n = 0; n < graph.nodes().size(); ++n)
      for (ValueId id : graph.nodes()[n].results) made_by_[at(id)] = n;
    turn_ = made_by_[at(graph.outputs()[0].value)] + 1;
    for (size_t n = turn_; n < graph.nodes().size(); ++n)
      for (ValueId id : graph.nodes()[n].operands) read_behind_[at(id)] = true;
    for (size_t n = turn_; n-- > 0;)
      if (const Node& node = graph.nodes()[n]; is_alias(node) && read_behind_[at(node.results[0])])
        read_behind_[at(node.operands[0])] = true;
    measure();
  }

  size_t turn() const { return turn_; }

  // So many segments of about as many bytes that the backward pass reads, each cut where little is alive.
  Cuts cuts(size_t segments) const {
    Cuts out;
    size_t last = 0;
    for (size_t i = 1; i < segments; ++i) {
      const int64_t wanted = kept_[turn_] / static_cast<int64_t>(segments) * static_cast<int64_t>(i);
      const auto middle = static_cast<size_t>(std::lower_bound(kept_.begin(), kept_.end(), wanted) - kept_.begin());
      const size_t reach = std::max<size_t>(1, turn_ / segments / 2);
      size_t best = std::min(middle, turn_);
      for (size_t n = middle > reach ? middle - reach : 0; n <= std::min(middle + reach, turn_); ++n)
        if (crossing_[n] < crossing_[best]) best = n;
      if (best > last && best < turn_) out.push_back(last = best);
    }
    return out;
  }

  Graph with(const Cuts& cuts) const {
    Rebuild rebuild(graph_);
    const std::vector<bool> stays = kept_values(cuts);
    std::map<ValueId, Value> again, apart;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (n < turn_ || is_leaf(node)) {
        rebuild.copy(node);
        continue;
      }
      std::vector<Value> operands;
      for (ValueId id : node.operands) operands.push_back(stays[at(id)] ? rebuild[id] : computed_again(id, stays, rebuild, again, apart));
      const auto results = rebuild.graph().add(node.op, operands, node.attributes, node.body);
      for (size_t i = 0; i < results.size(); ++i) rebuild.map(node.results[i], results[i]);
    }
    return rebuild.finish();
  }

 private:
  // By node: bytes of values before it that the backward pass reads, and of values that are alive between it and the node before.
  void measure() {
    kept_.assign(turn_ + 1, 0);
    crossing_.assign(turn_ + 1, 0);
    std::vector<size_t> last(graph_.value_count(), 0);
    for (size_t n = 0; n < turn_; ++n)
      for (ValueId id : graph_.nodes()[n].operands) last[at(id)] = n;
    for (size_t n = 0; n < turn_; ++n) {
      const Node& node = graph_.nodes()[n];
      kept_[n + 1] = kept_[n];
      if (is_leaf(node) || is_alias(node)) continue;
      for (ValueId id : node.results) {
        const int64_t bytes = graph_.type(id).bytes();
        if (read_behind_[at(id)]) kept_[n + 1] += bytes;
        if (last[at(id)] <= n) continue;
        crossing_[n + 1] += bytes;
        if (last[at(id)] + 1 <= turn_) crossing_[last[at(id)] + 1] -= bytes;
      }
    }
    std::partial_sum(crossing_.begin(), crossing_.end(), crossing_.begin());
  }

  // By value: whether the backward pass finds it where it was made. All but those of the forward pass that only their own segment reads;
  // the last segment is needed at once.
  std::vector<bool> kept_values(const Cuts& cuts) const {
    std::vector<bool> out(graph_.value_count(), true);
    const auto segment_of = [&](size_t n) { return std::upper_bound(cuts.begin(), cuts.end(), n) - cuts.begin(); };
    for (size_t n = 0; n < turn_; ++n) {
      const Node& node = graph_.nodes()[n];
      // Replicas meet in sums a fixed number of times.
      if (!is_leaf(node) && segment_of(n) < std::ssize(cuts) && node.op != Op::all_reduce)
        for (ValueId id : node.results) out[at(id)] = false;
    }
    for (size_t n = 0; n < turn_; ++n)
      for (ValueId id : graph_.nodes()[n].operands)
        if (segment_of(made_by_[at(id)]) != segment_of(n)) out[at(id)] = true;
    for (const auto& output : graph_.outputs()) out[at(output.value)] = true;
    for (const auto& update : graph_.updates()) out[at(update.next)] = true;
    return out;
  }

  // A walk with a list of its own: chains of nodes are long.
  Value computed_again(ValueId wanted, const std::vector<bool>& stays, Rebuild& rebuild, std::map<ValueId, Value>& again,
                       std::map<ValueId, Value>& apart) const {
    std::vector<ValueId> open{wanted};
    while (!open.empty()) {
      const ValueId id = open.back();
      if (again.contains(id)) {
        open.pop_back();
        continue;
      }
      const Node& node = graph_.nodes()[made_by_[at(id)]];
      const size_t before = open.size();
      for (ValueId operand : node.operands)
        if (!stays[at(operand)] && !again.contains(operand)) open.push_back(operand);
      if (open.size() > before) continue;
      std::vector<Value> operands;
      for (ValueId operand : node.operands) {
        const auto found = again.find(operand);
        operands.push_back(found != again.end() ? found->second : kept_apart(operand, rebuild, apart));
      }
      const auto results = rebuild.graph().add(node.op, operands, node.attributes, node.body);
      for (size_t i = 0; i < results.size(); ++i) again.emplace(node.results[i], results[i]);
    }
    return again.at(wanted);
  }

  // A kept value in a disguise, so that no pass finds that its segment is computed twice. What follows from weights alone may be shared.
  Value kept_apart(ValueId id, Rebuild& rebuild, std::map<ValueId, Value>& apart) const {
    const Value value = rebuild[id];
    const Node& maker = graph_.nodes()[made_by_[at(id)]];
    const bool is_input = maker.op == Op::parameter && role(maker) == Graph::Role::input;
    const auto other = other_dtype(value.dtype());
    if ((is_leaf(maker) && !is_input) || !other) return value;
    const auto [found, added] = apart.try_emplace(id);
    if (added) found->second = bitcast_convert(bitcast_convert(value, *other), value.dtype());
    return found->second;
  }

  const Graph& graph_;
  std::vector<size_t> made_by_;
  std::vector<bool> read_behind_;
  size_t turn_ = 0;
  std::vector<int64_t> kept_, crossing_;
};

}  // namespace

bool keeps_apart(const Graph& graph, const Node& node) {
  if (node.op != Op::bitcast_convert) return false;
  const Node& before = graph.maker(node.operands[0]);
  return before.op == Op::bitcast_convert && graph.type(before.operands[0]).dtype == graph.type(node.results[0]).dtype;
}

int64_t live_bytes(const Graph& graph) {
  std::vector<ValueId> owner(graph.value_count());
  std::vector<bool> counts(graph.value_count());
  std::vector<size_t> last(graph.value_count());
  const size_t end = graph.nodes().size();
  for (size_t n = 0; n < end; ++n) {
    const Node& node = graph.nodes()[n];
    for (ValueId id : node.operands) last[at(owner[at(id)])] = n;
    for (ValueId id : node.results) {
      owner[at(id)] = is_alias(node) ? owner[at(node.operands[0])] : id;
      counts[at(id)] = !is_leaf(node) && !is_alias(node);
      if (!is_alias(node)) last[at(id)] = n;
    }
  }
  for (const auto& output : graph.outputs()) last[at(owner[at(output.value)])] = end;
  for (const auto& update : graph.updates()) last[at(owner[at(update.next)])] = end;
  std::vector<int64_t> change(end + 2);
  for (size_t n = 0; n < end; ++n)
    for (ValueId id : graph.nodes()[n].results) {
      if (!counts[at(id)]) continue;
      change[n] += graph.type(id).bytes();
      change[last[at(id)] + 1] -= graph.type(id).bytes();
    }
  int64_t now = 0, most = 0;
  for (int64_t one : change) most = std::max(most, now += one);
  return most;
}

Graph recompute(const Graph& graph) {
  const Recomputation recomputation(graph);
  int64_t least = live_bytes(graph);
  Graph best = graph.clone();
  Cuts before;
  for (size_t segments = 2; segments <= std::min<size_t>(recomputation.turn(), 64); segments += std::max<size_t>(1, segments / 4)) {
    const Cuts cuts = recomputation.cuts(segments);
    if (cuts.empty() || cuts == before) continue;
    before = cuts;
    Graph tried = recomputation.with(cuts);
    if (const int64_t bytes = live_bytes(tried); bytes < least) {
      least = bytes;
      best = std::move(tried);
    }
  }
  return best;
}

}  // namespace tutti
