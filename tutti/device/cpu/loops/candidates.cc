#include "tutti/device/cpu/loops/candidates.h"

#include <algorithm>
#include <map>
#include <set>

#include "tutti/device/cpu/loops/fused_loop.h"
#include "tutti/device/cpu/loops/match_rows.h"
#include "tutti/device/cpu/loops/pool.h"
#include "tutti/device/cpu/loops/pool_gradient.h"
#include "tutti/device/cpu/loops/reduce.h"
#include "tutti/device/cpu/team.h"
#include "tutti/device/reference/moves.h"

namespace tutti::cpu {

namespace {

int32_t index_of(const Graph& graph, const Node* node) { return static_cast<int32_t>(node - graph.nodes().data()); }

// Whether only nodes of the group read the value, be it as a view or through a broadcast, which others can look through.
bool is_private(const Selection& selection, ValueId id, const std::set<int32_t>& group) {
  auto readers = selection.readers(id);
  return std::all_of(readers.begin(), readers.end(), [&](int32_t reader) {
    if (!group.contains(reader)) return false;
    const Node& node = selection.node(reader);
    return !(is_view(selection.graph(), node) || is_looked_through(node)) || is_private(selection, node.results[0], group);
  });
}

}  // namespace

std::optional<Step> match_row_kernel(const Selection& selection, int32_t index, std::string& reason) {
  const Graph& graph = selection.graph();
  auto match = match_rows(graph, selection.node(index));
  if (!match) return {};
  std::set<int32_t> group;
  for (const Node* node : match->nodes) group.insert(index_of(graph, node));
  Step step{.name = "", .nodes = {}, .operands = match->operands, .results = selection.node(index).results};
  for (int32_t inside : group) {
    const Node& node = selection.node(inside);
    if (is_view(graph, node)) continue;
    if (inside == index || (is_private(selection, node.results[0], group) && selection.is_free(inside))) {
      step.nodes.push_back(inside);
    } else if (node.op != Op::broadcast_in_dim) {
      reason = "something else reads what " + std::string(name(node.op)) + " gives on the way";
      return {};
    }
  }
  constexpr const char* names[] = {"softmax", "log softmax", "layer norm", "rms norm"};
  step.name = names[static_cast<size_t>(match->kind)];
  step.threads = selection.threads({.elements = 8 * match->rows * match->length});
  step.kernel = make_rows(*match, step.threads);
  step.in_place = true;
  return step;
}

std::optional<Step> match_pool(const Selection& selection, int32_t index, std::string& reason) {
  const Node& node = selection.node(index);
  const bool gradient = node.op == Op::select_and_scatter;
  if (node.op != Op::reduce_window && !gradient) return {};
  if (!(gradient ? can_pool_gradient : can_pool)(selection.graph(), node)) {
    reason = "no window over one to three axes before the channels of f32";
    return {};
  }
  int64_t operations = (gradient ? selection.type(node.operands[1]) : selection.type(node.results[0])).shape.elements();
  for (int64_t size : node.attributes.ints("window")) operations *= gradient ? 2 * size : size;
  Step step = step_of(selection.graph(), index, gradient ? "pool gradient" : "pool");
  step.threads = selection.threads({.elements = operations});
  step.kernel = (gradient ? make_pool_gradient : make_pool)(selection.graph(), node, step.threads);
  return step;
}

std::optional<Step> match_reduction(const Selection& selection, int32_t index, std::string& reason) {
  const Node& node = selection.node(index);
  if (node.op != Op::reduce) return {};
  if (selection.type(node.operands[0]).dtype != DType::f32) {
    reason = "not of f32";
    return {};
  }
  Step step = step_of(selection.graph(), index, "reduce");
  step.threads = selection.threads({.elements = selection.type(node.operands[0]).shape.elements()});
  step.kernel = make_reduction(selection.graph(), node, step.threads);
  return step;
}

std::optional<Step> match_copy(const Selection& selection, int32_t index, std::string&) {
  const Node& node = selection.node(index);
  reference::Moves moves = reference::moves_of(selection.graph(), node);
  if (moves.empty()) return {};
  Step step = step_of(selection.graph(), index, "copy");
  step.threads = selection.threads({.bytes = 2 * selection.type(node.results[0]).bytes()});
  step.kernel.run = [moves = std::move(moves), threads = step.threads](const Pointers& p) {
    for (const reference::Move& move : moves) {
      share(move.copy.extent(), threads,
            [&](int64_t begin, int64_t end) { move.copy.piece(p.operands[move.operand] + move.from, p.results[0] + move.to, begin, end); });
    }
  };
  return step;
}

namespace {

// Finds the nodes of a loop. What they make may also be read elsewhere, as long as that is after the last of them.
class LoopGroup {
 public:
  LoopGroup(const Selection& selection, int32_t seed) : selection_(selection), shape_(shape_of(seed)) {
    // From the end backwards: a node joins when everything that reads it before the end has.
    const int32_t end = end_of(seed);
    std::set<int32_t> waiting = {end};
    while (!waiting.empty()) {
      int32_t next = *waiting.rbegin();
      waiting.erase(next);
      nodes_.insert(next);
      for (ValueId id : selection_.node(next).operands) {
        int32_t producer = selection_.graph().producer(id);
        auto readers = selection_.readers(id);
        if (joins(producer) &&
            std::all_of(readers.begin(), readers.end(), [&](int32_t r) { return nodes_.contains(r) || is_after(r, end); }))
          waiting.insert(producer);
      }
    }
  }

  const std::set<int32_t>& nodes() const { return nodes_; }
  const Shape& shape() const { return shape_; }
  // What others read, the last node's result at the end.
  std::vector<ValueId> results() const {
    std::vector<ValueId> out;
    for (int32_t node : nodes_)
      if (node == *nodes_.rbegin() || !is_private(selection_, selection_.node(node).results[0], nodes_))
        out.push_back(selection_.node(node).results[0]);
    return out;
  }

 private:
  const Shape& shape_of(int32_t node) const { return selection_.type(selection_.node(node).results[0]).shape; }
  static bool is_after(int32_t reader, int32_t end) { return reader < 0 || reader > end; }

  bool joins(int32_t node) const {
    const Node& n = selection_.node(node);
    return selection_.is_free(node) && is_fusible(n) && !is_view(selection_.graph(), n) && shape_of(node) == shape_;
  }

  // The node at which all that is made of this node's result comes together, as far as that could be one loop.
  int32_t end_of(int32_t node) {
    auto known = ends_.find(node);
    if (known != ends_.end()) return known->second;
    int32_t end = -1;
    auto readers = selection_.readers(selection_.node(node).results[0]);
    for (int32_t reader : readers) {
      if (reader < 0 || !joins(reader)) continue;
      int32_t other = end_of(reader);
      if (end >= 0 && other != end) return ends_[node] = node;
      end = other;
    }
    for (int32_t reader : readers)
      if (end >= 0 && (reader < 0 || !joins(reader)) && !is_after(reader, end)) end = -1;
    return ends_[node] = end < 0 ? node : end;
  }

  const Selection& selection_;
  const Shape& shape_;
  std::set<int32_t> nodes_;
  std::map<int32_t, int32_t> ends_;
};

}  // namespace

std::optional<Step> match_loop(const Selection& selection, int32_t index, std::string&) {
  const Graph& graph = selection.graph();
  if (!is_fusible(selection.node(index))) return {};
  LoopGroup group(selection, index);
  const std::set<int32_t>& inside = group.nodes();
  Step step{.name = "loop", .nodes = {}, .operands = {}, .results = group.results()};
  step.in_place = step.results.size() == 1;
  std::set<int32_t> seen = inside;
  std::set<ValueId> operands;
  std::vector<ValueId> read;
  for (int32_t node : inside) read.insert(read.end(), selection.node(node).operands.begin(), selection.node(node).operands.end());
  while (!read.empty()) {
    ValueId id = read.back();
    read.pop_back();
    const int32_t producer = graph.producer(id);
    const Node& source = selection.node(producer);
    if (inside.contains(producer)) continue;
    if (is_looked_through(source)) {
      seen.insert(producer);
      read.push_back(source.operands[0]);
      // Not read at its own place, if it has the same shape: a broadcast can permute axes.
      if (selection.type(source.operands[0]) == selection.type(step.results[0])) step.in_place = false;
    } else if (source.op != Op::constant || selection.type(id).shape.elements() != 1) {
      operands.insert(id);
    }
  }
  step.operands.assign(operands.begin(), operands.end());
  std::vector<const Node*> nodes;
  for (int32_t node : seen) {
    nodes.push_back(&selection.node(node));
    if (!is_view(graph, selection.node(node)) &&
        (inside.contains(node) || (selection.is_free(node) && is_private(selection, selection.node(node).results[0], inside))))
      step.nodes.push_back(node);
  }
  for (int32_t node : inside) {
    if (has_vector_code(graph, selection.node(node))) continue;
    step.fallback = true;
    selection.refuse(node, "loop", "no vector code for this op and dtype");
  }
  step.kernel = make_fused_loop(graph, nodes, step.operands, step.results,
                                [&](int64_t elements) { return step.threads = selection.threads({.elements = elements}); });
  return step;
}

}  // namespace tutti::cpu
