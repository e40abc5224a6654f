// What a fused loop runs: a list of steps on each block of an iteration space. Steps hand each other blocks in registers, pieces of the
// workspace that stay in L1. Slots hold the pointers of a block: operands, constants, registers, results.
#pragma once

#include <array>
#include <functional>

#include "tutti/device/cpu/loops/block_space.h"
#include "tutti/device/cpu/simd/micro_ops.h"
#include "tutti/device/kernel.h"

namespace tutti::cpu {

// A micro-op; or two kernels of the reference device, for the longest and the last block.
struct BlockStep {
  MicroOp run = nullptr;
  std::function<void(const Pointers&)> whole, last;
  std::array<size_t, 5> operands{};  // slots
  size_t result = 0;                 // a slot
};

struct BlockLoop {
  explicit BlockLoop(BlockSpace blocks) : space(std::move(blocks)), counts(space.counts()) {}
  void operator()(const Pointers& p) const;

  struct Constant {
    size_t slot;
    std::vector<std::byte> bytes;
  };
  struct Operand {
    size_t slot, operand;
    int64_t offset;  // bytes
  };
  // A slot whose pointer moves with the block; steps in bytes, one an outer axis.
  struct Moving {
    size_t slot;
    Ints steps;
  };
  // A pattern that is written out into a register when its pointer has changed.
  struct Fill {
    size_t stream, from, to;  // slots
    int64_t element_bytes;
    bool repeats;
  };
  BlockSpace space;
  Ints counts;  // blocks along each outer axis
  std::vector<Constant> constants;
  std::vector<Operand> sources;
  std::vector<std::pair<size_t, size_t>> targets;     // slot, result
  std::vector<std::pair<size_t, int64_t>> registers;  // slot, byte in the thread's workspace
  std::vector<Moving> moving;
  std::vector<Fill> fills;
  std::vector<BlockStep> steps;
  size_t slots = 0;
  int64_t thread_bytes = 0;  // workspace of a thread: slots, filled pointers, registers
  int threads = 1;

 private:
  void run(const Pointers& p, std::byte* workspace, int64_t begin, int64_t end) const;
  void do_steps(std::byte* const* at, bool whole) const;
};

}  // namespace tutti::cpu
