// Jobs whose steps have one structure: the same graph with other numbers in it. They share its programs, one job at a time or many at once.
#pragma once

#include <functional>
#include <map>

#include "tutti/run/trainer.h"

namespace tutti {

// The two steps that tell what kind of job it is.
struct LoweredJob {
  explicit LoweredJob(const Trainer& trainer);
  std::string structure() const;                      // jobs of which this is equal share a group
  bool has_weights() const;                           // that training does not change
  std::vector<std::pair<StepKind, StepGraph>> steps;  // of training, and of evaluation if there is one
};

class FitGroup {
 public:
  // A job like others before (`lowered` is nullptr), or the first one of its recipe.
  void add(Trainer& trainer, const std::string& recipe, LoweredJob* lowered);
  // After the last one: the graphs of all kinds.
  void finish();

  // The step that all jobs of the group share. What differs between them besides their states (learning rates, frozen weights) became
  // states as well, which steps read and never change.
  const Graph& graph(StepKind kind) const { return graphs_.at(kind); }
  // The same for so many jobs at once, states and inputs side by side; all begin as the first job does.
  Graph stacked_graph(StepKind kind, int64_t models) const;
  const std::vector<Trainer*>& members() const { return members_; }
  // All kinds that members ask for, and how many of them do.
  const std::map<StepKind, size_t>& kinds() const { return kinds_; }
  StepKind first_kind() const { return first_kind_; }  // what most steps are

  // All states of all kinds; a member's own come first, in the order of Trainer::states().
  const std::vector<std::string>& states() const { return states_; }
  // Their values when a member begins.
  std::vector<Tensor> first_values(size_t member) const;

 private:
  // Jobs of one recipe need one look only.
  struct Recipe {
    std::string text;
    Trainer* first;
    std::shared_ptr<const StepGraph> facts;  // without a graph
    std::map<StepKind, Graph> graphs;        // until finish()
    std::vector<std::string> states;         // as this recipe calls them
    std::vector<Tensor> differing;           // its values of what differs
  };
  void merge(StepKind kind);

  std::vector<Recipe> recipes_;
  std::vector<Trainer*> members_;
  std::vector<size_t> recipe_;  // by member
  std::map<StepKind, size_t> kinds_;
  StepKind first_kind_;
  std::map<StepKind, Graph> graphs_;
  std::vector<std::string> states_;
};

// Every trainer in one group. Those that cannot be lowered are refused by index, with the reason, and are in none.
std::vector<std::unique_ptr<FitGroup>> group_jobs(std::span<Trainer* const> trainers,
                                                  const std::function<void(size_t, const std::string&)>& refuse);

}  // namespace tutti
