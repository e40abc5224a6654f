#include "tutti/run/fit_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/transform/rebuild.h"
#include "tutti/transform/repeat.h"
#include "tutti/transform/stack.h"

namespace tutti {

namespace {

std::vector<std::string> state_names(const Graph& graph) {
  std::vector<std::string> out;
  for (const Node* state : graph.parameters(Graph::Role::state)) out.push_back(state->attributes.text("name"));
  return out;
}

bool are_same_bytes(const Tensor& a, const Tensor& b) {
  return a.bytes().data() == b.bytes().data() || std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
}

// Constants, and weights with their values.
bool has_number(const Node& node) { return is_constant_leaf(node) && !node.literal.empty(); }

}  // namespace

LoweredJob::LoweredJob(const Trainer& trainer) {
  const auto kinds = trainer.kinds();
  const StepKind one{true, kinds[0].batch};
  steps.emplace_back(one, trainer.graph(one));
  const auto evaluation = std::find_if(kinds.begin(), kinds.end(), [](const StepKind& kind) { return !kind.training; });
  if (evaluation != kinds.end()) steps.emplace_back(*evaluation, trainer.graph(*evaluation));
}

std::string LoweredJob::structure() const {
  std::string out;
  for (const auto& [kind, step] : steps) out += structure_of(step.graph) + "---\n";
  return out;
}

bool LoweredJob::has_weights() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const auto& step) { return !step.second.graph.parameters(Graph::Role::weight).empty(); });
}

void FitGroup::add(Trainer& trainer, const std::string& recipe, LoweredJob* lowered) {
  auto found = std::find_if(recipes_.begin(), recipes_.end(), [&](const Recipe& known) { return !lowered && known.text == recipe; });
  if (lowered != nullptr) {
    Recipe made{recipe, &trainer, {}, {}, {}, {}};
    for (auto& [kind, step] : lowered->steps) {
      for (const std::string& name : state_names(step.graph))
        if (std::find(made.states.begin(), made.states.end(), name) == made.states.end()) made.states.push_back(name);
      made.graphs.emplace(kind, std::move(step.graph));
    }
    made.facts = std::make_shared<const StepGraph>(std::move(lowered->steps[0].second));
    trainer.describe(made.facts, made.states);
    found = recipes_.insert(recipes_.end(), std::move(made));
  } else {
    trainer.describe(found->facts, found->states);
  }
  members_.push_back(&trainer);
  recipe_.push_back(static_cast<size_t>(found - recipes_.begin()));
  const auto kinds = trainer.kinds();
  if (members_.size() == 1) first_kind_ = kinds[0];
  for (const StepKind& kind : kinds) ++kinds_[kind];
}

void FitGroup::finish() {
  states_ = recipes_[0].states;
  for (const auto& [kind, count] : kinds_)
    if (kind.steps == 1) merge(kind);
  for (const auto& [kind, count] : kinds_)
    if (kind.steps > 1) graphs_.emplace(kind, repeat(graphs_.at({kind.training, kind.batch}), kind.steps));
  for (Recipe& recipe : recipes_) recipe.graphs.clear();
}

// The first recipe's graph, with states in place of the numbers in which others differ.
void FitGroup::merge(StepKind kind) {
  std::vector<Graph> graphs;
  for (Recipe& recipe : recipes_) {
    const auto known = recipe.graphs.find(kind);
    graphs.push_back(known != recipe.graphs.end() ? std::move(known->second) : std::move(recipe.first->graph(kind).graph));
  }
  const Graph& first = graphs[0];
  const std::string structure = graphs.size() > 1 ? structure_of(first) : "";
  for (size_t i = 1; i < graphs.size(); ++i)
    if (structure_of(graphs[i]) != structure)
      fail<InternalError>("fit", "jobs that are alike at one batch size are not at another one, {}", kind.batch);
  Rebuild rebuild(first);
  size_t differing = 0;
  for (size_t n = 0; n < first.nodes().size(); ++n) {
    const Node& node = first.nodes()[n];
    const bool differs = has_number(node) && std::any_of(graphs.begin() + 1, graphs.end(), [&](const Graph& graph) {
                           return !are_same_bytes(graph.nodes()[n].literal, node.literal);
                         });
    if (!differs) {
      rebuild.copy(node);
      continue;
    }
    const std::string name = fmt::format("differs/{}/{}/{}", kind.training ? "train" : "evaluate", kind.batch, differing++);
    rebuild.map(node.results[0], rebuild.graph().parameter(Graph::Role::state, name, node.literal.type(), node.literal));
    states_.push_back(name);
    for (size_t i = 0; i < graphs.size(); ++i) recipes_[i].differing.push_back(graphs[i].nodes()[n].literal);
  }
  graphs_.emplace(kind, rebuild.finish());
}

Graph FitGroup::stacked_graph(StepKind kind, int64_t models) const {
  return stack_models(graph(kind), models,
                      [&](const Node& state) { return Tensor::stacked(std::vector<Tensor>(static_cast<size_t>(models), state.literal)); });
}

std::vector<Tensor> FitGroup::first_values(size_t member) const {
  const Recipe& recipe = recipes_[recipe_[member]];
  std::vector<Tensor> out = members_[member]->first_values(recipe.states);
  out.insert(out.end(), recipe.differing.begin(), recipe.differing.end());
  return out;
}

std::vector<std::unique_ptr<FitGroup>> group_jobs(std::span<Trainer* const> trainers,
                                                  const std::function<void(size_t, const std::string&)>& refuse) {
  std::vector<std::unique_ptr<FitGroup>> groups;
  std::map<std::string, FitGroup*> by_recipe, by_structure;
  for (size_t i = 0; i < trainers.size(); ++i) {
    if (trainers[i] == nullptr) continue;
    try {
      Trainer& trainer = *trainers[i];
      const std::string recipe = trainer.recipe();
      if (const auto known = by_recipe.find(recipe); known != by_recipe.end()) {
        known->second->add(trainer, recipe, nullptr);
        continue;
      }
      LoweredJob lowered(trainer);
      const bool shares = !lowered.has_weights();
      FitGroup*& group = by_structure[lowered.structure()];
      if (group == nullptr) group = groups.emplace_back(std::make_unique<FitGroup>()).get();
      group->add(trainer, shares ? recipe : "", &lowered);
      if (shares) by_recipe.emplace(recipe, group);
    } catch (const Error& error) {
      refuse(i, error.what());
    }
  }
  // What goes wrong at another batch size, as that of a pass's last batch, goes wrong for all that are alike.
  std::erase_if(groups, [&](const auto& group) {
    try {
      if (!group->members().empty()) group->finish();
      return group->members().empty();
    } catch (const Error& error) {
      for (const Trainer* trainer : group->members())
        refuse(static_cast<size_t>(std::find(trainers.begin(), trainers.end(), trainer) - trainers.begin()), error.what());
      return true;
    }
  });
  return groups;
}

}  // namespace tutti
