#include "tutti/device/xla/hlo.h"

#include <algorithm>
#include <map>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/device/xla/proto.h"

namespace tutti::xla {

namespace {

// ShapeProto, as far as its bytes go.
struct HloShape {
  Type type;  // of an array, or the first one in a tuple
  int64_t bytes = 0, elements = 0;
};

// HloInstructionProto.
struct Instruction {
  int64_t id = 0;
  std::string_view name, opcode, fusion_kind, target, config;
  HloShape shape;
  int64_t parameter = 0;
  std::vector<int64_t> operands, called;
  std::vector<int64_t> contracted;  // axes of the left side of a dot
  int64_t output_features = -1;     // axis of a convolution's kernel
};

struct Computation {
  int64_t root = 0;
  std::vector<Instruction> instructions;
  std::map<int64_t, size_t> by_id;
};

DType dtype_of_primitive(uint64_t type, int64_t& width) {
  // PrimitiveType of xla_data.proto.
  static const std::map<uint64_t, DType> known = {
      {1, DType::boolean}, {2, DType::i8},  {3, DType::i16},  {4, DType::i32},  {5, DType::i64},  {6, DType::u8},   {7, DType::u16},
      {8, DType::u32},     {9, DType::u64}, {10, DType::f16}, {11, DType::f32}, {12, DType::f64}, {16, DType::bf16}};
  const auto found = known.find(type);
  width = found == known.end() ? 0 : byte_size(found->second);  // tuples, tokens, and what no graph of ours has
  return found == known.end() ? DType::u8 : found->second;
}

std::vector<int64_t> numbers(const ProtoReader::Field& field) {
  std::vector<int64_t> out;
  if (field.text.empty()) return {static_cast<int64_t>(field.value)};
  std::string_view packed = field.text;
  while (auto value = ProtoReader::take_varint(packed)) out.push_back(static_cast<int64_t>(*value));
  return out;
}

void append(std::vector<int64_t>& to, const ProtoReader::Field& field) {
  const auto more = numbers(field);
  to.insert(to.end(), more.begin(), more.end());
}

// Shapes come from the compiler and nest as deep as tuples do, which is once or twice.
HloShape read_shape(std::string_view bytes, int depth = 0) {
  HloShape out;
  Ints extents;
  int64_t width = 0;
  bool is_tuple = false;
  if (depth > 8) fail<DeviceError>("xla", "a tuple of the plugin's program is nested too deeply");
  for (ProtoReader reader(bytes); const auto field = reader.next();) {
    if (field->number == 2) out.type.dtype = dtype_of_primitive(field->value, width);
    if (field->number == 3) append(extents, *field);
    if (field->number != 4) continue;
    const HloShape part = read_shape(field->text, depth + 1);
    if (!is_tuple) out.type = part.type;
    is_tuple = true;
    out.bytes = saturating_add(out.bytes, part.bytes);
    out.elements = saturating_add(out.elements, part.elements);
  }
  if (is_tuple) return out;
  out.elements = 1;
  for (int64_t extent : extents) out.elements = saturating_multiply(out.elements, std::max<int64_t>(0, extent));
  out.bytes = saturating_multiply(out.elements, width);
  out.type.shape = Shape(extents);
  return out;
}

Instruction read_instruction(std::string_view bytes) {
  Instruction out;
  for (ProtoReader reader(bytes); const auto field = reader.next();) switch (field->number) {
      case 1: out.name = field->text; break;
      case 2: out.opcode = field->text; break;
      case 3: out.shape = read_shape(field->text); break;
      case 9: out.parameter = static_cast<int64_t>(field->value); break;
      case 11: out.fusion_kind = field->text; break;
      case 16:  // ConvolutionDimensionNumbers { kernel_output_feature_dimension(4) }
        out.output_features = 0;
        for (ProtoReader inner(field->text); const auto one = inner.next();)
          if (one->number == 4) out.output_features = static_cast<int64_t>(one->value);
        break;
      case 28: out.target = field->text; break;
      case 30:  // DotDimensionNumbers { lhs_contracting_dimensions(1) }
        for (ProtoReader inner(field->text); const auto one = inner.next();)
          if (one->number == 1) append(out.contracted, *one);
        break;
      case 35: out.id = static_cast<int64_t>(field->value); break;
      case 36: append(out.operands, *field); break;
      case 38: append(out.called, *field); break;
      case 43: out.config = field->text; break;
      default: break;
    }
  return out;
}

class Module {
 public:
  explicit Module(std::string_view bytes) {
    for (ProtoReader reader(bytes); const auto field = reader.next();) {
      if (field->number == 6) entry_ = static_cast<int64_t>(field->value);
      if (field->number != 3) continue;
      Computation made;
      int64_t id = 0;
      for (ProtoReader inner(field->text); const auto one = inner.next();) {
        if (one->number == 5) id = static_cast<int64_t>(one->value);
        if (one->number == 6) made.root = static_cast<int64_t>(one->value);
        if (one->number != 2) continue;
        made.instructions.push_back(read_instruction(one->text));
        made.by_id[made.instructions.back().id] = made.instructions.size() - 1;
      }
      computations_[id] = std::move(made);
    }
  }
  const Computation& entry() const { return find(entry_); }
  const Computation& find(int64_t id) const {
    const auto found = computations_.find(id);
    if (found == computations_.end()) fail<DeviceError>("xla", "the plugin's program calls a computation that it does not have");
    return found->second;
  }

 private:
  std::map<int64_t, Computation> computations_;
  int64_t entry_ = 0;
};

const Instruction* operand(const Computation& in, const Instruction& of, size_t i) {
  if (i >= of.operands.size()) return nullptr;
  const auto found = in.by_id.find(of.operands[i]);
  return found == in.by_id.end() ? nullptr : &in.instructions[found->second];
}

// {"gemm_backend_config": {"dot_dimension_numbers": {"lhs_contracting_dimensions": ["1"], ...}}, "known_trip_count": {"n": "24"}}
Json config_of(const Instruction& instruction) {
  try {
    return instruction.config.empty() ? Json::object() : Json::parse(instruction.config);
  } catch (const Error&) {
    return Json::object();  // other platforms write other things
  }
}

const Json* at_path(const Json& root, std::initializer_list<const char*> path) {
  const Json* at = &root;
  for (const char* key : path)
    if (at->is_object()) {
      if ((at = at->find(key)) == nullptr) return nullptr;
    } else {
      return nullptr;
    }
  return at;
}

std::optional<int64_t> whole(const Json& value) {
  if (value.is_number()) return static_cast<int64_t>(value.as_number());
  if (!value.is_string()) return {};
  const std::string& text = value.as_string();
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) return {};
  return std::stoll(text);
}

int64_t trip_count(const Instruction& loop) {
  const Json config = config_of(loop);
  const Json* count = at_path(config, {"known_trip_count", "n"});
  return count == nullptr ? 1 : whole(*count).value_or(1);
}

bool is_free(std::string_view opcode) {
  static const std::set<std::string_view> free = {"parameter", "constant",       "tuple",        "get-tuple-element", "bitcast",
                                                  "after-all", "add-dependency", "partition-id", "replica-id",        "opt-barrier"};
  return free.contains(opcode) || opcode.ends_with("-done");
}

std::string short_target(std::string_view target) {
  for (const auto& [part, name] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"cublas", "cuBLAS"}, {"cudnn", "cuDNN"}, {"cub$", "CUB"}, {"__cub", "CUB"}, {"triton", "Triton"}, {"onednn", "oneDNN"}})
    if (target.find(part) != std::string_view::npos) {
      const size_t dollar = target.rfind('$');
      return fmt::format("{} {}", name, dollar == std::string_view::npos ? target : target.substr(dollar + 1));
    }
  return std::string(target);
}

class Walk {
 public:
  Walk(const Module& module, size_t inputs) : module_(module), inputs_(static_cast<int64_t>(inputs)) {}

  void run(const Computation& in, int depth, int64_t times) {
    if (depth > 32) fail<DeviceError>("xla", "the plugin's program is nested too deeply");
    for (const Instruction& instruction : in.instructions) {
      if (is_free(instruction.opcode)) continue;
      if (instruction.opcode == "call" || instruction.opcode == "async-start" || instruction.opcode == "conditional") {
        for (int64_t called : instruction.called) run(module_.find(called), depth, times);
        continue;
      }
      StepReport& step = out.steps.emplace_back();
      step.depth = depth;
      step.runs = times;
      step.result = instruction.shape.type;
      if (instruction.opcode == "while") {
        loop(instruction, depth, times);
        continue;
      }
      out.launches = saturating_add(out.launches, times);
      describe(in, instruction, step);
      count_bytes(in, instruction, depth, step);
    }
  }
  HloKernels out;

 private:
  // Its figures are those of its body.
  void loop(const Instruction& instruction, int depth, int64_t times) {
    const size_t own = out.steps.size() - 1;
    const int64_t trips = trip_count(instruction);
    out.steps[own].kernel = "while";
    out.steps[own].ops = {"while"};
    for (int64_t called : instruction.called) run(module_.find(called), depth + 1, saturating_multiply(times, trips));
    int64_t flops = 0, weights = 0, values = 0;
    for (size_t i = own + 1; i < out.steps.size(); ++i) {
      if (out.steps[i].depth != depth + 1) continue;
      flops = saturating_add(flops, saturating_multiply(trips, out.steps[i].flops));
      weights = saturating_add(weights, saturating_multiply(trips, out.steps[i].weight_bytes));
      values = saturating_add(values, saturating_multiply(trips, out.steps[i].value_bytes));
    }
    out.steps[own].flops = flops;
    out.steps[own].weight_bytes = weights;
    out.steps[own].value_bytes = values;
  }

  void describe(const Computation& in, const Instruction& instruction, StepReport& step) {
    if (instruction.opcode == "fusion") {
      ++out.fusions;
      step.kernel =
          fmt::format("fusion {}", instruction.fusion_kind.starts_with("k") ? instruction.fusion_kind.substr(1) : instruction.fusion_kind);
      for (int64_t called : instruction.called) inside(module_.find(called), step, 0);
      return;
    }
    if (instruction.opcode == "custom-call") {
      ++out.library_calls;
      step.kernel = short_target(instruction.target);
    } else {
      step.kernel = instruction.opcode;
    }
    step.ops = {std::string(instruction.opcode)};
    step.flops = flops_of(in, instruction);
  }

  void inside(const Computation& fused, StepReport& step, int depth) {
    if (depth > 8) return;
    for (const Instruction& one : fused.instructions) {
      if (is_free(one.opcode)) continue;
      step.ops.emplace_back(one.opcode);
      step.flops = saturating_add(step.flops, flops_of(fused, one));
      if (one.opcode == "fusion")
        for (int64_t called : one.called) inside(module_.find(called), step, depth + 1);
    }
  }

  static int64_t flops_of(const Computation& in, const Instruction& one) {
    static const std::set<std::string_view> moves = {"broadcast", "reshape",     "transpose",      "slice",
                                                     "pad",       "concatenate", "reverse",        "copy",
                                                     "iota",      "gather",      "dynamic-slice",  "dynamic-update-slice",
                                                     "fusion",    "copy-start",  "bitcast-convert"};
    if (moves.contains(one.opcode)) return 0;
    const Instruction *left = operand(in, one, 0), *right = operand(in, one, 1);
    const auto product = [&](int64_t each) { return saturating_multiply(2, saturating_multiply(one.shape.type.shape.elements(), each)); };
    if (one.opcode == "dot" && left != nullptr) return product(extents_along(*left, one.contracted));
    if (one.output_features >= 0 && right != nullptr) {
      const Shape& kernel = right->shape.type.shape;
      const int64_t features = one.output_features < kernel.rank() ? std::max<int64_t>(1, kernel[one.output_features]) : 1;
      return product(kernel.elements() / features);
    }
    if (one.opcode == "custom-call" && left != nullptr) {
      const Json config = config_of(one);
      const Json* axes = at_path(config, {"gemm_backend_config", "dot_dimension_numbers", "lhs_contracting_dimensions"});
      if (axes == nullptr || !axes->is_list()) return 0;
      std::vector<int64_t> contracted;
      for (const Json& axis : axes->items()) contracted.push_back(whole(axis).value_or(0));
      return product(extents_along(*left, contracted));
    }
    if ((one.opcode == "reduce" || one.opcode == "reduce-window") && left != nullptr) return left->shape.elements;
    return one.shape.elements;
  }

  static int64_t extents_along(const Instruction& of, const std::vector<int64_t>& axes) {
    int64_t out = 1;
    for (int64_t axis : axes)
      if (axis >= 0 && axis < of.shape.type.shape.rank()) out = saturating_multiply(out, of.shape.type.shape[axis]);
    return out;
  }

  // Of a parameter that a fusion takes slices of, these are read; one that it updates a slice of is computed in place.
  static int64_t read_bytes(const Computation& fused, int64_t parameter, int64_t all) {
    const auto found = std::find_if(fused.instructions.begin(), fused.instructions.end(),
                                    [&](const Instruction& one) { return one.opcode == "parameter" && one.parameter == parameter; });
    if (found == fused.instructions.end()) return all;
    int64_t bytes = 0;
    for (const Instruction& one : fused.instructions) {
      if (std::find(one.operands.begin(), one.operands.end(), found->id) == one.operands.end()) continue;
      if (one.operands[0] != found->id || !one.opcode.starts_with("dynamic-")) return all;
      if (one.opcode == "dynamic-slice") bytes = saturating_add(bytes, one.shape.bytes);
    }
    return std::min(all, bytes);
  }

  static int64_t written_bytes(const Computation& fused, int64_t all) {
    const auto root = fused.by_id.find(fused.root);
    if (root == fused.by_id.end()) return all;
    const Instruction& last = fused.instructions[root->second];
    const Instruction* update = last.opcode == "dynamic-update-slice" ? operand(fused, last, 1) : nullptr;
    return update == nullptr ? all : update->shape.bytes;
  }

  // Operands are read once and the result is written, whatever a kernel does inside.
  void count_bytes(const Computation& in, const Instruction& instruction, int depth, StepReport& step) const {
    const Computation* fused =
        instruction.opcode == "fusion" && !instruction.called.empty() ? &module_.find(instruction.called[0]) : nullptr;
    step.value_bytes = fused == nullptr ? instruction.shape.bytes : written_bytes(*fused, instruction.shape.bytes);
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      const Instruction* from = operand(in, instruction, i);
      if (from == nullptr) continue;
      const int64_t bytes = fused == nullptr ? from->shape.bytes : read_bytes(*fused, static_cast<int64_t>(i), from->shape.bytes);
      while (from != nullptr && (from->opcode == "bitcast" || from->opcode == "get-tuple-element") && !from->operands.empty())
        from = operand(in, *from, 0);
      const bool is_weight =
          from != nullptr && (from->opcode == "constant" || (depth == 0 && from->opcode == "parameter" && from->parameter >= inputs_));
      int64_t& place = is_weight ? step.weight_bytes : step.value_bytes;
      place = saturating_add(place, bytes);
    }
  }

  const Module& module_;
  int64_t inputs_;
};

}  // namespace

HloKernels kernels_of(std::string_view bytes, size_t inputs) {
  const Module module(bytes);
  Walk walk(module, inputs);
  walk.run(module.entry(), 0, 1);
  return std::move(walk.out);
}

}  // namespace tutti::xla
