#include "tutti/run/block_program.h"

#include <algorithm>

#include "tutti/graph/cost.h"

namespace tutti {

namespace {

// Members [begin, end) of an ensemble, to be one block.
struct Part {
  size_t begin, end;
  int64_t weight_bytes;
  std::shared_ptr<const MemberBlock> block;  // that has them already
  size_t members() const { return end - begin; }
};

bool is_same(const Ensemble::Member& a, const Ensemble::Member& b) { return a.name == b.name && a.model == b.model; }

// The old block whose members are those from `at` on.
std::shared_ptr<const MemberBlock> find(const MemberBlocks& before, const std::vector<Ensemble::Member>& members, size_t at) {
  for (const auto& block : before.blocks)
    if (block->members.size() <= members.size() - at &&
        std::equal(block->members.begin(), block->members.end(), members.begin() + static_cast<std::ptrdiff_t>(at), is_same))
      return block;
  return nullptr;
}

bool fit_together(const Part& a, const Part& b) {
  return a.members() + b.members() <= MemberBlock::most_members && a.weight_bytes + b.weight_bytes <= MemberBlock::most_weight_bytes;
}

// Old blocks where they are whole, and the members between them. Then neighbours that fit into one block become one, so that blocks stay
// few whoever comes and goes.
std::vector<Part> divide(const Ensemble& ensemble, const keras::LowerOptions& options, const MemberBlocks& before) {
  const auto add = [](std::vector<Part>& parts, const Part& next, bool joins) {
    if (joins && !parts.empty() && fit_together(parts.back(), next))
      parts.back() = {parts.back().begin, next.end, parts.back().weight_bytes + next.weight_bytes, nullptr};
    else
      parts.push_back(next);
  };
  std::vector<Part> parts, out;
  for (size_t at = 0; at < ensemble.members().size(); at = parts.back().end) {
    const auto block = find(before, ensemble.members(), at);
    if (block != nullptr)
      parts.push_back({at, at + block->members.size(), block->weight_bytes, block});
    else
      add(parts, {at, at + 1, weight_bytes(ensemble.lower_members(at, at + 1, options)), nullptr},
          !parts.empty() && parts.back().block == nullptr);
  }
  for (const Part& part : parts) add(out, part, true);
  return out;
}

// `guide`: the block whose arrangement was measured with most members, if there is one.
std::shared_ptr<const MemberBlock> compile_block(const Ensemble& ensemble, const Part& part, CompileOptions options,
                                                 const std::shared_ptr<Device>& device, const MemberBlock* guide) {
  auto block = std::make_shared<MemberBlock>();
  const auto first = ensemble.members().begin();
  block->members = {first + static_cast<std::ptrdiff_t>(part.begin), first + static_cast<std::ptrdiff_t>(part.end)};
  block->weight_bytes = part.weight_bytes;
  if (options.arrangement == Arrangement::measured && guide != nullptr && part.members() < 2 * guide->measured) {
    options.arrangement = guide->arrangement;
    block->measured = guide->measured;
  }
  std::vector<keras::LayerTrace> trace;
  std::vector<ArrangedGroup> groups;
  CompileSettings settings{options.threads, nullptr, nullptr, options.precision};
  Graph graph = ensemble.lower_members(part.begin, part.end, {options.batch, options.input_shapes, &trace});
  graph = arrange_for(std::move(graph), trace, options, device, &groups);
  block->program = compile_batch(*device, graph, settings, options.batch);
  block->arrangement = options.arrangement;
  if (options.arrangement == Arrangement::measured) {
    const auto most =
        std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.members.size() < b.members.size(); });
    block->arrangement = most != groups.end() ? most->chosen.arrangement : Arrangement::merged;
    block->measured = part.members();
  }
  return block;
}

}  // namespace

MemberBlocks compile_blocks(const Ensemble& ensemble, const CompileOptions& options, const std::shared_ptr<Device>& device,
                            const MemberBlocks& before) {
  MemberBlocks out;
  std::shared_ptr<const MemberBlock> guide;
  const auto consider = [&](const std::shared_ptr<const MemberBlock>& block) {
    if (guide == nullptr || block->measured > guide->measured) guide = block;
  };
  for (const auto& block : before.blocks) consider(block);
  std::vector<std::vector<Type>> types;
  for (const Part& part : divide(ensemble, {options.batch, options.input_shapes, nullptr}, before)) {
    out.blocks.push_back(part.block != nullptr ? part.block : compile_block(ensemble, part, options, device, guide.get()));
    consider(out.blocks.back());
    types.push_back(out.blocks.back()->program->output_types());
  }
  CompileSettings settings{options.threads, nullptr, nullptr, options.precision};
  out.reduction = compile_batch(*device, ensemble.lower_reductions(types, options.batch), settings, options.batch);
  return out;
}

BlockProgram::BlockProgram(std::shared_ptr<Device> device, const MemberBlocks& blocks, StateBuffers* states)
    : Program(blocks.blocks.at(0)->program->input_types(), blocks.reduction->output_types()),
      device_(std::move(device)),
      shared_(blocks),
      reduction_(blocks.reduction->context(states)) {
  for (const auto& block : shared_.blocks) {
    blocks_.push_back(block->program->context(states));
    for (const Type& type : block->program->output_types()) pointers_.push_back(pieces_.emplace_back(device_->allocate(type)).get());
  }
  const auto count = [&](const Program& part) {
    stats_.kernels += part.stats().kernels;
    stats_.flops += part.stats().flops;
    stats_.bytes += part.stats().bytes;
    stats_.peak_memory_bytes += part.stats().peak_memory_bytes;
    stats_.weight_bytes += part.stats().weight_bytes;
  };
  for (const auto& block : blocks_) count(*block);
  count(*reduction_);
}

void BlockProgram::run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) {
  check_arguments(inputs, outputs);
  std::span<Buffer* const> left = pointers_;
  for (const auto& block : blocks_) {
    const size_t own = block->output_types().size();
    block->run(inputs, left.first(own));
    left = left.subspan(own);
  }
  reduction_->run(pointers_, outputs);
}

std::unique_ptr<Program> BlockProgram::context(StateBuffers* states) const {
  return std::make_unique<BlockProgram>(device_, shared_, states);
}

}  // namespace tutti
