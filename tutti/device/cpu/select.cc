#include <algorithm>

#include "tutti/device/cpu/branches.h"
#include "tutti/device/cpu/candidate.h"
#include "tutti/device/cpu/candidates/contraction.h"
#include "tutti/device/cpu/loops/candidates.h"
#include "tutti/device/reference/kernel.h"
#include "tutti/device/scan.h"
#include "tutti/graph/cost.h"
#include "tutti/transform/rebuild.h"

namespace tutti::cpu {

namespace {

std::optional<Step> scan(const Selection& selection, int32_t index, std::string&) {
  const Node& node = selection.node(index);
  if (node.op != Op::scan) return {};
  Step step = step_of(selection.graph(), index, "scan");
  SelectOptions options = selection.options();
  options.scan = &node;
  options.zero_carries.clear();
  for (int64_t i = 0; i < node.attributes.integer("carries"); ++i)
    options.zero_carries.push_back(selection.number(node.operands[static_cast<size_t>(i)]) == 0.0);
  std::vector<Step> body = select_steps(*node.body, options);
  step.launches = scan_launches(node, body);
  step.kernel = make_scan(node, std::move(body));
  return step;
}

std::optional<Step> reference_kernel(const Selection& selection, int32_t index, std::string&) {
  Step step = step_of(selection.graph(), index, "reference");
  step.fallback = true;
  reference::make_kernel(selection.graph(), step);
  return step;
}

constexpr Candidate list[] = {
    {"scan", scan},
    {"rows", match_row_kernel},
    {"separable convolution", separable_convolution},
    {"pooled convolution", pooled_convolution},
    {"convolution", convolution},
    {"matmul", dense_matmul},
    {"batched matmul", batched_matmul},
    {"pool", match_pool},
    {"reduce", match_reduction},
    {"table rows", match_table_rows},
    {"loop", match_loop},
    {"copy", match_copy},
    {"reference", reference_kernel},
};

// Without steps whose results nobody reads: broadcasts that every reader looks through.
std::vector<Step> without_dead(const Graph& graph, std::vector<Step> steps) {
  std::vector<bool> needed(graph.value_count());
  for (const auto& output : graph.outputs()) needed[at(output.value)] = true;
  for (const auto& update : graph.updates()) needed[at(update.next)] = true;
  std::vector<Step> kept;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (is_view(graph, node) && needed[at(node.results[0])]) needed[at(node.operands[0])] = true;
    if (steps.empty() || steps.back().nodes.back() != static_cast<int32_t>(n)) continue;
    Step step = std::move(steps.back());
    steps.pop_back();
    if (std::none_of(step.results.begin(), step.results.end(), [&](ValueId id) { return needed[at(id)]; })) continue;
    for (ValueId id : step.operands) needed[at(id)] = true;
    kept.push_back(std::move(step));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

// Of a program, to wake a second thread; then of a kernel, to use it, which takes less than a microsecond once it is awake, and keeps what
// each thread has made in its own cache; and for each further one.
constexpr double worth_a_team = 12'000, worth_a_second = 2'500, worth_a_thread = 5'000;

// Of the graph in one run of what it is part of.
double runs(const SelectOptions& options) {
  return options.scan != nullptr ? static_cast<double>(options.scan->attributes.integer("length")) : 1;
}

}  // namespace

double nanoseconds(const Work& work) {
  constexpr double flops = 60, elements = 8, bytes = 50;  // in one of them
  return std::max(static_cast<double>(work.flops) / flops + static_cast<double>(work.elements) / elements,
                  static_cast<double>(work.bytes) / bytes);
}

Work work_of(const Graph& graph) {
  const Cost all = cost(graph);
  return {.flops = all.flops, .bytes = all.bytes};
}

Work work_of(const Graph& graph, const Node& node) {
  const Cost own = cost(graph, node);
  return {.flops = own.flops, .bytes = own.bytes};
}

std::span<const Candidate> candidates() { return list; }

Selection::Selection(const Graph& graph, const SelectOptions& options)
    : graph_(graph),
      options_(options),
      is_large_(options.threads > 1 && nanoseconds(work_of(graph)) * runs(options) >= worth_a_team),
      taken_(graph.nodes().size()),
      readers_(graph.value_count()) {
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (ValueId id : graph.nodes()[n].operands) readers_[at(id)].push_back(static_cast<int32_t>(n));
  for (const auto& output : graph.outputs()) readers_[at(output.value)].push_back(-1);
  for (const auto& update : graph.updates()) readers_[at(update.next)].push_back(-1);
}

int Selection::threads(const Work& work) const {
  if (!is_large_) return 1;
  const double time = nanoseconds(work);
  if (time < worth_a_second) return 1;
  return static_cast<int>(std::clamp(time / worth_a_thread, 2.0, static_cast<double>(options_.threads)));
}

int32_t Selection::single_user(ValueId id) const {
  if (users(id) != 1) return -1;
  int32_t user = readers(id)[0];
  return user >= 0 && is_free(user) ? user : -1;
}

std::optional<Tensor> Selection::known(ValueId id) const {
  const Node& source = node(graph_.producer(id));
  if (source.op == Op::reshape) {
    auto inner = known(source.operands[0]);
    return inner ? inner->reshaped(type(id).shape) : inner;
  }
  if (!is_constant_leaf(source)) return {};
  return source.literal;
}

std::optional<size_t> Selection::input_of_body(ValueId id) const {
  if (options_.scan == nullptr) return {};
  const Node* source = &node(graph_.producer(id));
  while (source->op == Op::reshape) source = &node(graph_.producer(source->operands[0]));
  if (source->op != Op::parameter || role(*source) != Graph::Role::input) return {};
  const auto inputs = graph_.parameters(Graph::Role::input);
  return static_cast<size_t>(std::find(inputs.begin(), inputs.end(), source) - inputs.begin());
}

bool Selection::stays(ValueId id) const {
  const auto input = input_of_body(id);
  if (!input) return false;
  const Attributes& attributes = options_.scan->attributes;
  return static_cast<int64_t>(*input) >= attributes.integer("carries") + attributes.integer("slices");
}

bool Selection::begins_as_zeros(ValueId id) const {
  const auto input = input_of_body(id);
  return input && *input < options_.zero_carries.size() && options_.zero_carries[*input];
}

std::optional<double> Selection::number(ValueId id) const { return splat(graph_, id); }

void Selection::refuse(int32_t index, std::string_view candidate, std::string reason) const {
  if (options_.refusals != nullptr) options_.refusals->push_back({&graph_, index, candidate, std::move(reason)});
}

void Selection::take(const Step& step) {
  for (int32_t node : step.nodes) taken_[static_cast<size_t>(node)] = true;
}

std::vector<Step> select_steps(const Graph& graph, const SelectOptions& options) {
  Selection selection(graph, options);
  std::vector<Step> steps;
  if (auto branches = match_branches(selection)) {
    selection.take(*branches);
    steps.push_back(std::move(*branches));
  }
  for (const Candidate& candidate : candidates())
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      auto index = static_cast<int32_t>(n);
      if (!needs_step(graph, graph.nodes()[n]) || !selection.is_free(index)) continue;
      std::string reason;
      if (auto step = candidate.match(selection, index, reason)) {
        selection.take(*step);
        steps.push_back(std::move(*step));
      } else if (!reason.empty()) {
        selection.refuse(index, candidate.name, std::move(reason));
      }
    }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.nodes.back() < b.nodes.back(); });
  return without_dead(graph, std::move(steps));
}

}  // namespace tutti::cpu
