#include "tutti/device/cpu/loops/fused_loop.h"

#include <algorithm>
#include <map>
#include <set>

#include "tutti/base/error.h"
#include "tutti/device/cpu/loops/block_loop.h"
#include "tutti/device/cpu/loops/composites.h"
#include "tutti/device/cpu/team.h"
#include "tutti/device/plan.h"
#include "tutti/device/reference/kernel.h"

namespace tutti::cpu {

namespace {

constexpr int64_t block_elements = 1024;
// A little more than a power of two, so that registers do not compete for the same lines of the cache.
constexpr int64_t register_bytes(int64_t elements, int64_t element_bytes) {
  return (elements * element_bytes + BlockSpace::slack + 63) / 64 * 64;
}

// What a fusible node reads that no node of the loop makes.
struct Source {
  ValueId value;
  int64_t offset;  // of the space's first element, in elements
  Ints strides;    // one an axis of the space, likewise
  DType dtype;
  auto operator<=>(const Source& other) const = default;
};

// What one step does: a node, or several of which this is the last.
struct Instruction {
  const Node* node;
  std::vector<ValueId> operands;
  MicroOp composite;  // null: the node alone
};

class Maker {
 public:
  Maker(const Graph& graph, std::span<const Node* const> nodes, std::span<const ValueId> operands, std::span<const ValueId> results)
      : graph_(graph), operands_(operands), results_(results) {
    for (const Node* node : nodes) {
      for (ValueId id : node->results) made_by_[id] = node;
      if (is_fusible(*node)) elementwise_.push_back(node);
    }
    if (elementwise_.empty()) fail<InternalError>("cpu", "a fused loop of no elementwise node");
    shape_ = graph.type(elementwise_[0]->results[0]).shape;
    for (const Node* node : elementwise_) {
      if (!(graph.type(node->results[0]).shape == shape_))
        fail<InternalError>("cpu", "a fused loop over {} has a node over {}", to_string(shape_),
                            to_string(graph.type(node->results[0]).shape));
      for (ValueId id : node->operands)
        if (!is_inside(id)) source_index(id);
    }
  }

  BlockLoop make() {
    std::vector<Ints> streams;
    for (const Source& source : sources_) streams.push_back(source.strides);
    streams.push_back(shape_.strides());  // results
    BlockLoop loop(BlockSpace(shape_, streams, block_elements));
    loop_ = &loop;
    for (size_t i = 0; i < sources_.size(); ++i) place_source(i);
    for (size_t i = 0; i < results_.size(); ++i) {
      slot_of_[results_[i]] = loop.slots;
      loop.targets.emplace_back(loop.slots, i);
      move(sources_.size(), byte_size(graph_.type(results_[i]).dtype), loop.slots++);
    }
    choose_instructions();
    for (const Instruction& instruction : instructions_) add_step(instruction);
    find_places();
    // Filled pointers stand behind the slots, registers behind both.
    int64_t head = Plan::aligned(static_cast<int64_t>((loop.slots + loop.fills.size()) * sizeof(std::byte*)));
    for (auto& [slot, offset] : loop.registers) offset += head;
    loop.thread_bytes = head + registers_end_;
    return loop;
  }

  // Of the loop that was made.
  std::vector<ResultOver> over;
  int64_t elements() const { return shape_.elements() * static_cast<int64_t>(instructions_.size()); }

 private:
  // A result may lie on an operand of its type that is read at its own place only, and by no instruction behind the result's own.
  void find_places() {
    for (size_t o = 0; o < operands_.size(); ++o) {
      const auto reads = [&](const Source& source) { return source.value == operands_[o]; };
      const auto source = std::find_if(sources_.begin(), sources_.end(), reads);
      if (std::count_if(sources_.begin(), sources_.end(), reads) != 1 || source->offset != 0) continue;
      if (!(graph_.type(operands_[o]).shape == shape_) || source->strides != steps_of_shape()) continue;
      const size_t last = last_reading(static_cast<size_t>(source - sources_.begin()));
      for (size_t r = 0; r < results_.size(); ++r)
        if (graph_.type(results_[r]) == graph_.type(operands_[o]) && maker_of(results_[r]) >= last) over.push_back({r, o});
    }
  }

  // As sources have them: an axis of one element has no step.
  Ints steps_of_shape() const {
    Ints out = shape_.strides();
    for (int64_t axis = 0; axis < shape_.rank(); ++axis)
      if (shape_[axis] == 1) out[static_cast<size_t>(axis)] = 0;
    return out;
  }

  size_t last_reading(size_t source) {
    size_t last = 0;
    for (size_t i = 0; i < instructions_.size(); ++i)
      for (ValueId id : instructions_[i].operands)
        if (!is_inside(id) && source_index(id) == source) last = i;
    return last;
  }

  size_t maker_of(ValueId id) const {
    const auto makes = [&](const Instruction& instruction) { return instruction.node->results[0] == id; };
    return static_cast<size_t>(std::find_if(instructions_.begin(), instructions_.end(), makes) - instructions_.begin());
  }

  bool is_inside(ValueId id) const {
    auto found = made_by_.find(id);
    return found != made_by_.end() && is_fusible(*found->second);
  }

  // Walks back through the nodes that are looked through. An axis of the space is an axis of the value at hand, or none (-1); its first
  // element stands at `first` there, the next one `steps` further. An axis of one element has no next one, and its step, which may be any
  // number, does not count.
  size_t source_index(ValueId id) {
    auto known = source_of_.find(id);
    if (known != source_of_.end()) return known->second;
    ValueId value = id;
    Ints axes, steps, first(static_cast<size_t>(shape_.rank()));
    for (int64_t axis = 0; axis < shape_.rank(); ++axis) axes.push_back(shape_[axis] == 1 ? -1 : axis);
    steps.assign(axes.size(), 1);
    for (auto made = made_by_.find(value); made != made_by_.end(); made = made_by_.find(value)) {
      const Node& node = *made->second;
      value = node.operands[0];
      if (node.op == Op::slice) {
        const Ints &start = node.attributes.ints("start"), &strides = node.attributes.ints("strides");
        for (size_t axis = 0; axis < first.size(); ++axis) first[axis] = start[axis] + first[axis] * strides[axis];
        for (size_t i = 0; i < axes.size(); ++i)
          if (axes[i] >= 0) steps[i] *= strides[static_cast<size_t>(axes[i])];
        continue;
      }
      if (node.op != Op::broadcast_in_dim) fail<InternalError>("cpu", "a fused loop broadcasts what it makes");
      const Ints& dimensions = node.attributes.ints("dimensions");
      const Shape& from = graph_.type(value).shape;
      for (int64_t& axis : axes) {
        auto found = std::find(dimensions.begin(), dimensions.end(), axis);
        axis = axis < 0 || found == dimensions.end() ? -1 : found - dimensions.begin();
        if (axis >= 0 && from[axis] == 1) axis = -1;
      }
      Ints begin;
      for (size_t axis = 0; axis < dimensions.size(); ++axis)
        begin.push_back(from[static_cast<int64_t>(axis)] == 1 ? 0 : first[static_cast<size_t>(dimensions[axis])]);
      first = std::move(begin);
    }
    const Type& type = graph_.type(value);
    const Ints own = type.shape.strides();
    Source source{value, 0, {}, type.dtype};
    for (size_t axis = 0; axis < first.size(); ++axis) source.offset += first[axis] * own[axis];
    for (size_t i = 0; i < axes.size(); ++i) source.strides.push_back(axes[i] < 0 ? 0 : steps[i] * own[static_cast<size_t>(axes[i])]);
    auto same = std::find(sources_.begin(), sources_.end(), source);
    if (same == sources_.end()) same = sources_.insert(same, source);
    return source_of_[id] = static_cast<size_t>(same - sources_.begin());
  }

  const Tensor* literal(ValueId id) const {
    const Node& node = graph_.maker(id);
    return node.op == Op::constant ? &node.literal : nullptr;
  }

  void move(size_t stream, int64_t element_bytes, size_t slot) {
    Ints steps = loop_->space.steps(stream);
    for (int64_t& step : steps) step *= element_bytes;
    for (int64_t step : steps)
      if (step != 0) return loop_->moving.push_back({slot, std::move(steps)});
  }

  void place_source(size_t stream) {
    const Source& source = sources_[stream];
    size_t slot = loop_->slots++;
    source_slot_.push_back(slot);
    const int64_t offset = source.offset * byte_size(source.dtype);
    auto operand = std::find(operands_.begin(), operands_.end(), source.value);
    if (operand != operands_.end()) {
      loop_->sources.push_back({slot, static_cast<size_t>(operand - operands_.begin()), offset});
    } else if (const Tensor* tensor = literal(source.value)) {
      loop_->constants.push_back({slot, {tensor->bytes().begin() + offset, tensor->bytes().end()}});
    } else {
      fail<InternalError>("cpu", "a fused loop reads value {}, which is none of its operands", source.value);
    }
    move(stream, byte_size(source.dtype), slot);
  }

  // The slot of a source as consecutive elements.
  size_t dense_slot(size_t stream) {
    if (loop_->space.access(stream) == BlockSpace::Access::dense) return source_slot_[stream];
    auto known = expanded_.find(stream);
    if (known != expanded_.end()) return known->second;
    int64_t bytes = byte_size(sources_[stream].dtype);
    size_t slot = new_register(bytes);
    loop_->fills.push_back({stream, source_slot_[stream], slot, bytes, loop_->space.repeats(stream)});
    return expanded_[stream] = slot;
  }

  size_t new_register(int64_t element_bytes) {
    size_t slot = loop_->slots++;
    loop_->registers.emplace_back(slot, registers_end_);
    registers_end_ += register_bytes(loop_->space.longest(), element_bytes);
    return slot;
  }

  // Which operands are one element for a whole block, a bit each.
  unsigned scalars_of(const std::vector<ValueId>& operands) {
    unsigned scalars = 0;
    for (size_t i = 0; i < operands.size(); ++i)
      if (!is_inside(operands[i]) && loop_->space.access(source_index(operands[i])) == BlockSpace::Access::one) scalars |= 1u << i;
    return scalars;
  }

  // From the last node backwards, so that larger composites come before those inside of them.
  void choose_instructions() {
    CompositeFinder finder(graph_, elementwise_, results_);
    std::set<const Node*> absorbed;
    for (size_t i = elementwise_.size(); i-- > 0;) {
      const Node* node = elementwise_[i];
      if (absorbed.contains(node)) continue;
      Instruction instruction{node, node->operands, nullptr};
      for (const FoundComposite& found : finder.find(*node)) {
        MicroOp run = find_composite(found.composite, scalars_of(found.operands));
        if (run == nullptr) continue;
        instruction = {node, found.operands, run};
        absorbed.insert(found.inside.begin(), found.inside.end());
        break;
      }
      instructions_.insert(instructions_.begin(), std::move(instruction));
    }
  }

  void add_step(const Instruction& instruction) {
    const Node& node = *instruction.node;
    BlockStep step;
    unsigned scalars = scalars_of(instruction.operands);
    step.run = instruction.composite;
    if (step.run == nullptr) step.run = find_simpler(node, scalars);
    if (step.run == nullptr) step.run = find_micro_op(graph_, node, scalars);
    if (step.run == nullptr && scalars != 0) step.run = find_micro_op(graph_, node, scalars = 0);
    if (step.run == nullptr) use_reference(node, step);
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      ValueId id = instruction.operands[i];
      if (is_inside(id)) {
        step.operands[i] = slot_of_.at(id);
      } else {
        step.operands[i] = (scalars >> i & 1) != 0 ? source_slot_[source_index(id)] : dense_slot(source_index(id));
      }
    }
    step.result = result_slot(instruction);
    loop_->steps.push_back(std::move(step));
  }

  MicroOp find_simpler(const Node& node, unsigned scalars) {
    if (scalars != 2 || graph_.type(node.operands[1]).dtype != DType::f32) return nullptr;
    const Tensor* tensor = literal(sources_[source_index(node.operands[1])].value);
    return tensor != nullptr && tensor->shape().elements() == 1 ? find_micro_op_with_constant(node.op, tensor->as<float>()[0]) : nullptr;
  }

  void use_reference(const Node& node, BlockStep& step) {
    for (auto [count, to] : {std::pair{loop_->space.longest(), &step.whole}, std::pair{loop_->space.last(), &step.last}}) {
      Graph block;
      std::vector<Value> values;
      for (ValueId id : node.operands) values.push_back(block.input("x", {graph_.type(id).dtype, {count}}));
      block.add(node.op, values, node.attributes);
      *to = reference::find_kernel(node.op)->make(block, block.nodes().back()).run;
    }
  }

  // A result has its memory; a register is free again when the last node that reads it is done, and may take that node's result.
  size_t result_slot(const Instruction& instruction) {
    ValueId id = instruction.node->results[0];
    auto outside = slot_of_.find(id);
    int64_t bytes = byte_size(graph_.type(id).dtype);
    for (ValueId operand : instruction.operands) {
      auto held = register_of_.find(operand);
      if (held == register_of_.end() || last_reader(operand) != instruction.node) continue;
      free_.push_back(held->second);
      register_of_.erase(held);
    }
    if (outside != slot_of_.end()) return outside->second;
    for (size_t i = 0; i < free_.size(); ++i) {
      if (free_[i].element_bytes != bytes) continue;
      Register taken = free_[i];
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
      register_of_[id] = taken;
      return slot_of_[id] = taken.slot;
    }
    Register fresh{new_register(bytes), bytes};
    register_of_[id] = fresh;
    return slot_of_[id] = fresh.slot;
  }

  const Node* last_reader(ValueId id) const {
    for (size_t i = instructions_.size(); i-- > 0;) {
      const auto& operands = instructions_[i].operands;
      if (std::find(operands.begin(), operands.end(), id) != operands.end()) return instructions_[i].node;
    }
    return nullptr;
  }

  struct Register {
    size_t slot;
    int64_t element_bytes;
  };
  const Graph& graph_;
  std::span<const ValueId> operands_, results_;
  std::map<ValueId, const Node*> made_by_;
  std::vector<const Node*> elementwise_;
  std::vector<Instruction> instructions_;
  Shape shape_;
  std::vector<Source> sources_;
  std::map<ValueId, size_t> source_of_;  // of sources_
  std::vector<size_t> source_slot_;
  std::map<size_t, size_t> expanded_;  // a source's register
  std::map<ValueId, size_t> slot_of_;  // of values that the loop makes
  std::map<ValueId, Register> register_of_;
  std::vector<Register> free_;
  int64_t registers_end_ = 0;
  BlockLoop* loop_ = nullptr;
};

}  // namespace

bool is_fusible(const Node& node) { return is_elementwise(node.op) && node.op != Op::bitcast_convert; }

bool has_vector_code(const Graph& graph, const Node& node) { return find_micro_op(graph, node, 0) != nullptr; }

Kernel make_fused_loop(const Graph& graph, std::span<const Node* const> nodes, std::span<const ValueId> operands,
                       std::span<const ValueId> results, const std::function<int(int64_t elements)>& threads) {
  Maker maker(graph, nodes, operands, results);
  BlockLoop loop = maker.make();
  loop.threads = threads(maker.elements());
  const int64_t workspace = size_for<std::byte>(loop.threads, loop.thread_bytes);
  Kernel kernel{std::move(loop), workspace};
  kernel.over = std::move(maker.over);
  return kernel;
}

}  // namespace tutti::cpu
