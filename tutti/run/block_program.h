// An ensemble as several programs, so that a member more or less leaves most of them as they are: blocks of members that follow each
// other, and one small program that reduces what all blocks give.
#pragma once

#include "tutti/run/ensemble.h"
#include "tutti/run/predictor.h"

namespace tutti {

// Members that are compiled together. Many are quick to run, few are quick to compile; large ones are alone.
struct MemberBlock {
  static constexpr size_t most_members = 64;
  static constexpr int64_t most_weight_bytes = 16 << 20;

  std::vector<Ensemble::Member> members;
  int64_t weight_bytes = 0;
  std::shared_ptr<const Program> program;  // from the ensemble's inputs to the members' outputs, each [members, ...]
  Arrangement arrangement = Arrangement::merged;
  size_t measured = 0;  // how many members there were when that was measured
};

struct MemberBlocks {
  std::vector<std::shared_ptr<const MemberBlock>> blocks;
  std::shared_ptr<const Program> reduction;  // from the outputs of all blocks, one after another, to the ensemble's
};

// Takes over the blocks of `before`, an ensemble that takes the same inputs, whose members are all there still, and compiles the others.
// How members are arranged is measured for the first block, and again for one that is twice as large.
MemberBlocks compile_blocks(const Ensemble& ensemble, const CompileOptions& options, const std::shared_ptr<Device>& device,
                            const MemberBlocks& before = {});

// The blocks as one program.
class BlockProgram : public Program {
 public:
  BlockProgram(std::shared_ptr<Device> device, const MemberBlocks& blocks, StateBuffers* states = nullptr);
  void run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) override;
  bool computes() const override { return reduction_->computes(); }
  std::unique_ptr<Program> context(StateBuffers* states = nullptr) const override;

 private:
  std::shared_ptr<Device> device_;
  MemberBlocks shared_;
  std::vector<std::unique_ptr<Program>> blocks_;  // our own contexts
  std::unique_ptr<Program> reduction_;
  std::vector<std::unique_ptr<Buffer>> pieces_;  // what blocks give, by block and output
  std::vector<Buffer*> pointers_;                // to them
};

}  // namespace tutti
