#include "tutti/device/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "tutti/base/error.h"

namespace tutti {

namespace {

constexpr int64_t max_arena = int64_t{1} << 56;

// Free and used stretches of an arena that grows at its end: best fit, neighbours joined when freed.
class Arena {
 public:
  int64_t take(int64_t bytes) {
    if (bytes == 0) return 0;
    bytes = (bytes + Plan::alignment - 1) / Plan::alignment * Plan::alignment;
    auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) return grow(bytes);
    auto [size, offset] = *fit;
    remove(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void give(int64_t offset, int64_t bytes) {
    if (bytes == 0) return;
    bytes = (bytes + Plan::alignment - 1) / Plan::alignment * Plan::alignment;
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      auto [before, size] = *std::prev(next);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
        bytes += size;
      }
    }
    insert(offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  int64_t grow(int64_t bytes) {
    int64_t offset = end_;
    if (!by_offset_.empty()) {  // a free stretch at the end is lengthened
      auto [last, size] = *by_offset_.rbegin();
      if (last + size == end_) {
        remove(last, size);
        offset = last;
      }
    }
    if (bytes > max_arena - offset) fail<OutOfMemory>("plan", "intermediate values need more than {} bytes", max_arena);
    end_ = offset + bytes;
    return offset;
  }
  void insert(int64_t offset, int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(int64_t offset, int64_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;  // (bytes, offset)
  int64_t end_ = 0;
};

bool is_leaf(Op op) { return op == Op::parameter || op == Op::constant; }

// broadcast_in_dim that only inserts axes of extent 1.
bool only_inserts_ones(const Type& from, const Type& to, const Ints& dimensions) {
  if (from.shape.elements() != to.shape.elements()) return false;
  int64_t last = -1;
  for (int64_t i = 0; i < from.shape.rank(); ++i) {
    if (from.shape[i] == 1) continue;
    if (dimensions[static_cast<size_t>(i)] < last) return false;
    last = dimensions[static_cast<size_t>(i)];
  }
  return true;
}

}  // namespace

bool is_view(const Graph& graph, const Node& node) {
  if (node.op == Op::reshape || node.op == Op::bitcast_convert) return true;
  if (node.op == Op::convert) return graph.type(node.operands[0]) == graph.type(node.results[0]);
  if (node.op == Op::broadcast_in_dim)
    return only_inserts_ones(graph.type(node.operands[0]), graph.type(node.results[0]), node.attributes.ints("dimensions"));
  return false;
}

Plan plan_memory(const Graph& graph, std::span<const int64_t> workspace) {
  const auto& nodes = graph.nodes();
  Plan plan;
  plan.root.resize(graph.value_count());
  plan.offset.assign(graph.value_count(), Plan::outside);
  plan.workspace.assign(nodes.size(), 0);

  // The last node that reads a root; nodes.size() for what outlives the run.
  std::vector<size_t> last(graph.value_count());
  auto at = [](ValueId id) { return static_cast<size_t>(id); };
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    bool view = is_view(graph, node);
    for (ValueId id : node.results) {
      plan.root[at(id)] = view ? plan.root[at(node.operands[0])] : id;
      last[at(plan.root[at(id)])] = n;
    }
    for (ValueId id : node.operands) last[at(plan.root[at(id)])] = n;
  }
  for (const auto& output : graph.outputs()) last[at(plan.root[at(output.value)])] = nodes.size();
  for (const auto& update : graph.updates()) last[at(plan.root[at(update.next)])] = nodes.size();

  std::vector<std::vector<ValueId>> ends(nodes.size());  // per node: roots read for the last time
  for (size_t v = 0; v < graph.value_count(); ++v)
    if (plan.root[v] == static_cast<ValueId>(v) && last[v] < nodes.size() && !is_leaf(nodes[at(graph.producer(plan.root[v]))].op))
      ends[last[v]].push_back(plan.root[v]);

  Arena arena;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    for (ValueId id : node.results)
      if (plan.root[at(id)] != id) {
        plan.offset[at(id)] = plan.offset[at(plan.root[at(id)])];
      } else if (!is_leaf(node.op)) {
        plan.offset[at(id)] = arena.take(graph.type(id).bytes());
      }
    if (!workspace.empty()) {
      plan.workspace[n] = arena.take(workspace[n]);
      arena.give(plan.workspace[n], workspace[n]);
    }
    for (ValueId id : ends[n]) arena.give(plan.offset[at(id)], graph.type(id).bytes());
  }
  plan.arena_bytes = arena.end();
  return plan;
}

}  // namespace tutti
