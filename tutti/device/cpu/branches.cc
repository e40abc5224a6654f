#include "tutti/device/cpu/branches.h"

#include <algorithm>
#include <map>
#include <set>

#include "tutti/device/bytes.h"
#include "tutti/device/cpu/team.h"
#include "tutti/device/sequence.h"
#include "tutti/transform/rebuild.h"

namespace tutti::cpu {

namespace {

constexpr int32_t no_branch = -1, behind = -2;

bool is_heavy(const Node& node) { return node.op == Op::dot_general || node.op == Op::convolution || node.op == Op::scan; }

// Which branch each node belongs to. From the outputs backwards, nodes that are not heavy are what joins the branches; a heavy one before
// them is the end of a branch, and a node that one branch alone reads is part of it.
class BranchFinder {
 public:
  explicit BranchFinder(const Selection& selection)
      : selection_(selection), graph_(selection.graph()), branch_(graph_.nodes().size(), no_branch), constant_(graph_.nodes().size()) {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      constant_[n] = node.op != Op::parameter || is_constant_leaf(node);
      for (ValueId id : node.operands) constant_[n] = constant_[n] && constant_[producer(id)];
    }
  }

  // `joins`: heavy nodes that count as what joins branches.
  void find(const std::set<size_t>& joins) {
    for (size_t n = graph_.nodes().size(); n-- > 0;)
      if (!is_leaf(n)) branch_[n] = label(n, joins);
    take_tails();
  }

  // By branch, nodes ascending.
  std::map<int32_t, std::vector<size_t>> branches() const {
    std::map<int32_t, std::vector<size_t>> out;
    for (size_t n = 0; n < branch_.size(); ++n)
      if (branch_[n] >= 0) out[branch_[n]].push_back(n);
    return out;
  }

  int32_t branch(size_t node) const { return branch_[node]; }
  bool is_leaf(size_t n) const { return row(graph_.nodes()[n].op).op_class == OpClass::leaf; }
  bool is_constant(ValueId id) const { return constant_[producer(id)]; }
  // Whether anyone but the branch's own nodes reads a value.
  bool is_read_outside(ValueId id, int32_t branch) const {
    const auto readers = selection_.readers(id);
    return std::any_of(readers.begin(), readers.end(), [&](int32_t n) { return branch_of_reader(n) != branch; });
  }

 private:
  size_t producer(ValueId id) const { return static_cast<size_t>(graph_.producer(id)); }
  int32_t branch_of_reader(int32_t node) const { return node < 0 ? behind : branch_[static_cast<size_t>(node)]; }

  int32_t label(size_t n, const std::set<size_t>& joins) const {
    const Node& node = graph_.nodes()[n];
    bool all_behind = true;
    int32_t common = no_branch;
    for (ValueId id : node.results)
      for (int32_t reader : selection_.readers(id)) {
        const int32_t own = branch_of_reader(reader);
        all_behind = all_behind && own == behind;
        if (common == no_branch) common = own;
        if (own != common) return no_branch;
      }
    if (!all_behind) return common >= 0 ? common : no_branch;
    return is_heavy(node) && !joins.contains(n) ? static_cast<int32_t>(n) : behind;
  }

  // Nodes that only one branch leads to are its last ones.
  void take_tails() {
    for (size_t n = 0; n < branch_.size(); ++n) {
      if (branch_[n] != behind) continue;
      int32_t common = no_branch;
      bool one = true;
      for (ValueId id : graph_.nodes()[n].operands) {
        const size_t from = producer(id);
        if (constant_[from]) continue;
        one = one && branch_[from] >= 0 && (common == no_branch || branch_[from] == common);
        common = branch_[from];
      }
      if (one && common >= 0) branch_[n] = common;
    }
  }

  const Selection& selection_;
  const Graph& graph_;
  std::vector<int32_t> branch_;  // by node: the last heavy node of its branch, or one of the two above
  std::vector<bool> constant_;   // by node: made of constants alone
};

struct Branch {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Sequence> steps;
  std::vector<std::pair<ValueId, size_t>> inputs;  // a parameter of the graph, and which operand of the step it is
  struct Output {
    Sequence::Port port;
    size_t result;  // of the step
    int64_t bytes;
  };
  std::vector<Output> outputs;
};

class BranchesKernel {
 public:
  BranchesKernel(std::vector<Branch> branches, int threads) : branches_(std::move(branches)), threads_(threads) {
    for (const Branch& branch : branches_) {
      frame_bytes_ = std::max(frame_bytes_, Plan::aligned(branch.steps->frame_bytes()));
      first_times_.push_back(times_);
      times_ += branch.steps->timed_steps();
    }
  }

  int64_t workspace() const { return size_for<std::byte>(threads_, frame_bytes_); }

  void run(const Pointers& p) const {
    each(p, [&](const Branch& branch, size_t, std::byte* frame) { branch.steps->run(frame, p.turn); });
  }
  void run_timed(const Pointers& p, std::span<double> seconds) const {
    each(p, [&](const Branch& branch, size_t i, std::byte* frame) {
      branch.steps->run_timed(frame, seconds.subspan(first_times_[i], branch.steps->timed_steps()), p.turn);
    });
  }

 private:
  template <class Run>
  void each(const Pointers& p, const Run& run) const {
    team(threads_, static_cast<int64_t>(branches_.size()), [&](int64_t i, int slot) {
      const Branch& branch = branches_[static_cast<size_t>(i)];
      std::byte* frame = own(slot, p.workspace, frame_bytes_);
      branch.steps->place(frame);
      for (const auto& [value, operand] : branch.inputs) branch.steps->bind(frame, value, p.operands[operand]);
      for (const auto& output : branch.outputs)
        if (output.port.direct) branch.steps->bind(frame, output.port.value, p.results[output.result]);
      run(branch, static_cast<size_t>(i), frame);
      for (const auto& output : branch.outputs)
        if (!output.port.direct) copy_bytes(p.results[output.result], branch.steps->value(frame, output.port.value), output.bytes);
    });
  }

  std::vector<Branch> branches_;
  int threads_;
  int64_t frame_bytes_ = 0;
  std::vector<size_t> first_times_;
  size_t times_ = 0;
};

class BranchBuilder {
 public:
  BranchBuilder(const Selection& selection, const BranchFinder& finder) : selection_(selection), finder_(finder) {
    step_.name = "branches";
  }

  void add(const std::vector<size_t>& nodes) {
    const Graph& from = selection_.graph();
    Graph graph;
    graph.set_origins(from.origins());
    std::map<ValueId, Value> values;
    Branch branch;
    for (size_t n : nodes)
      for (ValueId id : from.nodes()[n].operands) {
        if (finder_.branch(static_cast<size_t>(from.producer(id))) == finder_.branch(nodes[0]) || values.contains(id)) continue;
        if (finder_.is_constant(id)) {
          values[id] = constant(graph, id);
          continue;
        }
        values[id] = graph.input("value", from.type(id));
        branch.inputs.emplace_back(values[id].id(), operand(id));
      }
    std::vector<ValueId> wanted;
    for (size_t n : nodes) {
      const Node& node = from.nodes()[n];
      std::vector<Value> operands;
      for (ValueId id : node.operands) operands.push_back(values[id]);
      const auto results = graph.add(node.op, operands, node.attributes, node.body);
      graph.set_origin(graph.nodes().size() - 1, graph.nodes().size(), node.origin);
      for (size_t i = 0; i < results.size(); ++i) {
        values[node.results[i]] = results[i];
        if (finder_.is_read_outside(node.results[i], finder_.branch(n))) want(node.results[i], wanted);
      }
      step_.nodes.push_back(static_cast<int32_t>(n));
    }
    for (ValueId id : wanted) graph.output("value", values[id]);
    branch.graph = std::make_shared<const Graph>(std::move(graph));
    SelectOptions options = selection_.options();
    options.scan = nullptr;
    options.threads = 1;
    branch.steps = std::make_shared<const Sequence>(*branch.graph, select_steps(*branch.graph, options));
    const auto ports = branch.steps->output_ports(*branch.graph);
    for (size_t i = 0; i < wanted.size(); ++i) {
      branch.outputs.push_back({ports[i], step_.results.size(), from.type(wanted[i]).bytes()});
      step_.results.push_back(wanted[i]);
    }
    step_.launches += branch.steps->launches();
    step_.kernel.bodies.push_back({branch.graph, branch.steps, 1});
    branches_.push_back(std::move(branch));
  }

  Step finish(int threads) {
    std::sort(step_.nodes.begin(), step_.nodes.end());
    step_.threads = threads;
    --step_.launches;  // the step itself is none
    auto kernel = std::make_shared<const BranchesKernel>(std::move(branches_), threads);
    step_.kernel.workspace = kernel->workspace();
    step_.kernel.run = [kernel](const Pointers& p) { kernel->run(p); };
    step_.kernel.run_timed = [kernel](const Pointers& p, std::span<double> seconds) { kernel->run_timed(p, seconds); };
    return std::move(step_);
  }

 private:
  // A value that others read, and what they find where they look through the node that makes it.
  void want(ValueId id, std::vector<ValueId>& wanted) const {
    if (std::find(wanted.begin(), wanted.end(), id) != wanted.end()) return;
    wanted.push_back(id);
    const Graph& graph = selection_.graph();
    const Node& node = graph.maker(id);
    if (!is_view(graph, node) && !is_looked_through(node)) return;
    const auto branch = [&](ValueId value) { return finder_.branch(static_cast<size_t>(graph.producer(value))); };
    if (branch(node.operands[0]) == branch(id)) want(node.operands[0], wanted);
  }

  size_t operand(ValueId id) {
    const auto place = static_cast<size_t>(std::find(step_.operands.begin(), step_.operands.end(), id) - step_.operands.begin());
    if (place == step_.operands.size()) step_.operands.push_back(id);
    return place;
  }

  // What is made of constants is made in every branch that needs it, where kernels can see what it is.
  Value constant(Graph& graph, ValueId id) const {
    const Graph& from = selection_.graph();
    const Node& node = from.maker(id);
    if (node.op == Op::iota) return graph.iota(from.type(id), node.attributes.integer("dimension"));
    if (row(node.op).op_class == OpClass::leaf) return graph.constant(node.literal);
    std::vector<Value> operands;
    for (ValueId inner : node.operands) operands.push_back(constant(graph, inner));
    const auto place = std::find(node.results.begin(), node.results.end(), id) - node.results.begin();
    return graph.add(node.op, operands, node.attributes, node.body)[static_cast<size_t>(place)];
  }

  const Selection& selection_;
  const BranchFinder& finder_;
  Step step_;
  std::vector<Branch> branches_;
};

// Whether everything that reads a branch stands behind the last node of all of them.
bool can_be_one_step(const Graph& graph, const BranchFinder& finder) {
  size_t last = 0;
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    if (finder.branch(n) >= 0) last = n;
  for (size_t n = 0; n < last; ++n) {
    if (finder.branch(n) >= 0) continue;
    for (ValueId id : graph.nodes()[n].operands)
      if (finder.branch(static_cast<size_t>(graph.producer(id))) >= 0) return false;
  }
  return true;
}

// What threads can share before they have to wait for each other: of a loop, one turn.
Work work_at_once(const Graph& graph, const Node& node) {
  Work work = work_of(graph, node);
  if (node.op != Op::scan) return work;
  const int64_t length = std::max<int64_t>(1, node.attributes.integer("length"));
  return {.flops = work.flops / length, .elements = work.elements / length, .bytes = work.bytes / length};
}

}  // namespace

std::optional<Step> match_branches(const Selection& selection) {
  // Nanoseconds: of a kernel, for being called; to gather the threads; and what the whole must take to be worth it.
  constexpr double call = 50, gathering = 300, worth_it = 12'000;
  // Of all cores, what kernels on all threads reach, and what branches do.
  constexpr double by_kernels = 0.8, by_branches = 0.95;
  const Graph& graph = selection.graph();
  const int threads = selection.options().threads;
  if (threads < 2) return {};
  std::vector<double> times;
  double all = 0;
  for (const Node& node : graph.nodes()) {
    times.push_back(needs_step(graph, node) ? nanoseconds(work_of(graph, node)) + call : 0);
    all += times.back();
  }
  if (all < worth_it) return {};
  BranchFinder finder(selection);
  std::map<int32_t, std::vector<size_t>> branches;
  // Cheap layers may follow what joins the branches.
  constexpr size_t most_joins = 8;
  for (std::set<size_t> joins; branches.size() < 2; joins.insert(static_cast<size_t>(branches.begin()->first))) {
    if (joins.size() > most_joins) return {};
    finder.find(joins);
    branches = finder.branches();
    if (branches.empty() || (branches.size() == 1 && times[static_cast<size_t>(branches.begin()->first)] > all / 20)) return {};
  }
  if (!can_be_one_step(graph, finder)) return {};

  double in_turn = 0, sum = 0, longest = 0;
  for (const auto& [last, nodes] : branches) {
    double own = 0;
    for (size_t n : nodes) {
      const bool shared = selection.threads(work_at_once(graph, graph.nodes()[n])) > 1;
      in_turn += shared ? times[n] / (by_kernels * threads) : times[n];
      own += times[n];
    }
    sum += own;
    longest = std::max(longest, own);
  }
  const double side_by_side = std::max(longest, sum / threads) / by_branches + gathering;
  if (side_by_side > 0.9 * in_turn) return {};
  BranchBuilder builder(selection, finder);
  for (const auto& [last, nodes] : branches) builder.add(nodes);
  return builder.finish(std::min<int>(threads, static_cast<int>(branches.size())));
}

}  // namespace tutti::cpu
