// Several models as one: all see the same inputs, their outputs are reduced on the device. A model like any other, so also a member of
// another ensemble.
#pragma once

#include <functional>
#include <memory>

#include "tutti/keras/any_model.h"
#include "tutti/run/reduction.h"

namespace tutti {

struct EnsembleOptions {
  std::vector<Reduction> reductions = {Reduction{}};  // one output each, in this order
  std::vector<double> weights = {};                   // one a member for mean and votes; none: all alike
  // Reduces over the members that give a number. The last output then says which do not: "nan_members", a truth a sample and member.
  bool ignore_nan = false;
};

// How many outputs a model has for an ensemble or a forecast of it: "nan_members" is for who runs it by itself.
size_t predictions_of(const keras::AnyModel& model);

class Ensemble : public keras::AnyModel {
 public:
  struct Member {
    std::string name;  // for messages, and before the names of its weights
    std::shared_ptr<const keras::AnyModel> model;
  };
  // Throws InvalidArgument naming the members whose inputs or outputs do not go together. It takes and gives what `before` does, else what
  // the first member does.
  Ensemble(std::vector<Member> members, EnsembleOptions options, const Ensemble* before = nullptr);

  const std::vector<Member>& members() const { return members_; }
  const EnsembleOptions& options() const { return options_; }
  // By member and its input: which of ours it is.
  const std::vector<std::vector<size_t>>& sources() const { return sources_; }
  // By member and prediction: which of its outputs that is.
  const std::vector<std::vector<size_t>>& places() const { return places_; }

  static constexpr std::string_view class_name = "Ensemble";  // in traces
  std::string name() const override { return "ensemble"; }
  const std::vector<keras::ModelInput>& inputs() const override { return inputs_; }
  // A reduction's name; with several outputs a member, "NAME.mean".
  const std::vector<std::string>& output_names() const override { return output_names_; }
  const std::vector<std::string>& problems() const override { return problems_; }
  int64_t probe_extent() const override { return probe_extent_; }
  Graph lower(const keras::LowerOptions& options) const override;

  // The same in parts (run/block_program.h): from our inputs to the outputs of members [first, end), each [members, ...],
  Graph lower_members(size_t first, size_t end, const keras::LowerOptions& options) const;
  // and from those of all members, in pieces of these types, by piece and output, to our outputs.
  Graph lower_reductions(const std::vector<std::vector<Type>>& pieces, int64_t samples) const;

 private:
  void match_inputs();
  void match_outputs();
  // A graph with what `fill` adds to it, and our own entry in the trace around that of the members.
  Graph traced(const keras::LowerOptions& options, const std::function<void(Graph& graph)>& fill) const;
  std::vector<Value> add_members(Graph& graph, size_t first, size_t end, const keras::LowerOptions& options) const;
  void add_reductions(Graph& graph, const std::vector<Value>& outputs, int64_t samples) const;
  // The outputs of one name of members from `first` on, in pieces of [members, ...]: made alike, one after another.
  Value join(std::vector<Value> pieces, size_t first, size_t output) const;

  std::vector<Member> members_;
  EnsembleOptions options_;
  std::vector<std::vector<size_t>> sources_, places_;
  std::vector<keras::ModelInput> inputs_;
  std::vector<std::string> predictions_;  // names of what members give
  std::vector<std::string> output_names_, problems_;
  int64_t probe_extent_ = 1;
};

}  // namespace tutti
