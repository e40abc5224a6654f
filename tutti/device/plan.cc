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
    bytes = Plan::aligned(bytes);
    auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) return grow(bytes);
    auto [size, offset] = *fit;
    remove(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void give(int64_t offset, int64_t bytes) {
    if (bytes == 0) return;
    bytes = Plan::aligned(bytes);
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

// The operand whose place the step's first result may take: of the same type, and read here for the last time.
ValueId overwritten(const Graph& graph, const Plan& plan, const Step& step, std::span<const size_t> last, size_t now) {
  if (!step.in_place) return -1;
  for (ValueId operand : step.operands) {
    ValueId root = plan.root[at(operand)];
    bool same = graph.type(operand).bytes() == graph.type(step.results[0]).bytes() &&
                graph.type(operand).dtype == graph.type(step.results[0]).dtype && graph.type(root).bytes() == graph.type(operand).bytes();
    if (same && plan.offset[at(root)] != Plan::outside && last[at(root)] == now) return root;
  }
  return -1;
}

// What a step reads is a leaf, which has its memory from outside, or a result of a step.
void check_places(const Graph& graph, const Plan& plan, std::span<const Step> steps) {
  for (const Step& step : steps)
    for (ValueId id : step.operands) {
      const ValueId root = plan.root[at(id)];
      if (plan.offset[at(root)] == Plan::outside && row(graph.maker(root).op).op_class != OpClass::leaf)
        fail<InternalError>("plan", "a step '{}' reads what no step gives: {}", step.name, name(graph.maker(root).op));
    }
}

}  // namespace

Plan plan_memory(const Graph& graph, std::span<const Step> steps) {
  Plan plan;
  plan.root.resize(graph.value_count());
  plan.offset.assign(graph.value_count(), Plan::outside);
  plan.workspace.assign(steps.size(), 0);

  std::vector<bool> inside(graph.nodes().size());
  for (const Step& step : steps)
    for (int32_t node : step.nodes) inside[static_cast<size_t>(node)] = true;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    bool view = !inside[n] && is_view(graph, node);
    for (ValueId id : node.results) plan.root[at(id)] = view ? plan.root[at(node.operands[0])] : id;
  }

  // The last step that reads a root; steps.size() for what outlives the run.
  std::vector<size_t> last(graph.value_count());
  for (size_t s = 0; s < steps.size(); ++s) {
    for (ValueId id : steps[s].results) last[at(id)] = s;
    for (ValueId id : steps[s].operands) last[at(plan.root[at(id)])] = s;
  }
  for (const auto& output : graph.outputs()) last[at(plan.root[at(output.value)])] = steps.size();
  for (const auto& update : graph.updates()) last[at(plan.root[at(update.next)])] = steps.size();

  std::vector<std::vector<ValueId>> ends(steps.size() + 1);  // per step: roots read for the last time
  for (const Step& step : steps)
    for (ValueId id : step.results) ends[last[at(id)]].push_back(id);

  Arena arena;
  // What threads have for themselves is at one place in all steps: there each finds it in its own cache.
  constexpr int64_t most_of_each = int64_t{1} << 20;
  const auto is_of_threads = [&](const Step& step) {
    return step.threads > 1 && !step.kernel.keeps_workspace && step.kernel.workspace <= step.threads * most_of_each;
  };
  int64_t of_threads = 0;
  for (const Step& step : steps)
    if (is_of_threads(step)) of_threads = std::max(of_threads, step.kernel.workspace);
  const int64_t place_of_threads = arena.take(of_threads);
  for (size_t s = 0; s < steps.size(); ++s)
    if (steps[s].kernel.keeps_workspace) plan.workspace[s] = arena.take(steps[s].kernel.workspace);
  std::vector<bool> handed_on(graph.value_count());  // the place belongs to another value now
  for (size_t s = 0; s < steps.size(); ++s) {
    for (size_t r = 0; r < steps[s].results.size(); ++r) {
      ValueId id = steps[s].results[r];
      ValueId over = r == 0 ? overwritten(graph, plan, steps[s], last, s) : -1;
      if (over >= 0) handed_on[at(over)] = true;
      plan.offset[at(id)] = over >= 0 ? plan.offset[at(over)] : arena.take(graph.type(id).bytes());
    }
    if (is_of_threads(steps[s])) {
      plan.workspace[s] = place_of_threads;
    } else if (!steps[s].kernel.keeps_workspace) {
      plan.workspace[s] = arena.take(steps[s].kernel.workspace);
      arena.give(plan.workspace[s], steps[s].kernel.workspace);
    }
    for (ValueId id : ends[s])
      if (!handed_on[at(id)]) arena.give(plan.offset[at(id)], graph.type(id).bytes());
  }
  for (size_t v = 0; v < graph.value_count(); ++v) plan.offset[v] = plan.offset[at(plan.root[v])];
  check_places(graph, plan, steps);
  plan.arena_bytes = arena.end();
  return plan;
}

}  // namespace tutti
