// How the cpu device chooses its kernels. Candidates stand in an ordered list, the last one the reference kernels; each in turn looks at
// every node that no step has taken yet, and takes a group of nodes around it or says why not. A faster kernel is a file and a row.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tutti/device/cpu/gemm/pack_memo.h"
#include "tutti/device/report.h"

namespace tutti::cpu {

// What a kernel does in a run, from which the number of its threads is chosen.
struct Work {
  int64_t flops = 0;     // of products
  int64_t elements = 0;  // that loops make or read, once for each thing they do to them
  int64_t bytes = 0;     // read and written
};

// The time of one core, roughly: what kernels reach where caches feed them.
double nanoseconds(const Work& work);
Work work_of(const Graph& graph);
Work work_of(const Graph& graph, const Node& node);

struct SelectOptions {
  int threads = 1;
  std::vector<Refusal>* refusals = nullptr;  // where to put the reasons why candidates did not take a node, if anyone wants them
  PackMemo* packs = nullptr;                 // of the model, where it may have more programs
  const Node* scan = nullptr;                // whose body the graph is
  std::vector<bool> zero_carries = {};       // of that scan: which begin as zeros
};

// What a candidate may ask about the graph while steps are chosen.
class Selection {
 public:
  Selection(const Graph& graph, const SelectOptions& options);

  const Graph& graph() const { return graph_; }
  const SelectOptions& options() const { return options_; }
  // Packs these weights, or has them from another program.
  Packer packer(const Tensor& weights) const { return options_.packs != nullptr ? options_.packs->packer(weights) : Packer(pack_anew); }
  // Remembers why a candidate does not take a node, or not well.
  void refuse(int32_t node, std::string_view candidate, std::string reason) const;
  // That a kernel should use: so many that each has a few times more to do than joining in costs; one in all of a small program.
  int threads(const Work& work) const;
  const Node& node(int32_t index) const { return graph_.nodes()[static_cast<size_t>(index)]; }
  const Type& type(ValueId id) const { return graph_.type(id); }

  // Not yet part of a step.
  bool is_free(int32_t node) const { return !taken_[static_cast<size_t>(node)]; }
  // The one node that reads a value, if it is free and the value is no output: -1 otherwise.
  int32_t single_user(ValueId id) const;
  // How many nodes and outputs read a value.
  int users(ValueId id) const { return static_cast<int>(readers(id).size()); }
  // The nodes that read a value, ascending, one twice if it reads it twice; -1 for an output or update.
  std::span<const int32_t> readers(ValueId id) const { return readers_[at(id)]; }
  // A weight's or constant's value, through reshapes of it; nothing for what is only known at run time.
  std::optional<Tensor> known(ValueId id) const;
  // Whether every turn of the loop, whose body the graph is, reads the same there.
  bool stays(ValueId id) const;
  // Whether it is zeros in the first turn of that loop.
  bool begins_as_zeros(ValueId id) const;
  // The number that every element of the value is, if it is a constant of one element or broadcast from one.
  std::optional<double> number(ValueId id) const;

  void take(const Step& step);

 private:
  // Which input of the loop's body a value is, through reshapes.
  std::optional<size_t> input_of_body(ValueId id) const;

  const Graph& graph_;
  SelectOptions options_;
  bool is_large_;                              // enough to do for a second thread
  std::vector<bool> taken_;                    // per node
  std::vector<std::vector<int32_t>> readers_;  // per value
};

struct Candidate {
  std::string_view name;
  // A step with its kernel around this node; or nothing, and in `reason` why, when the op is one of the candidate's.
  std::optional<Step> (*match)(const Selection& selection, int32_t node, std::string& reason);
};

// In the order in which they are asked.
std::span<const Candidate> candidates();

// Steps for every node but leaves and views, in the order they run. Refusals inside of the bodies of scans are among them.
std::vector<Step> select_steps(const Graph& graph, const SelectOptions& options = {});

}  // namespace tutti::cpu
