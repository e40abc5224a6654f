#include "tutti/keras/layers/quantized.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/graph/einsum.h"
#include "tutti/keras/layers/einsum_dense.h"
#include "tutti/keras/layers/lora.h"

namespace tutti::keras {

namespace {

struct Quantized {
  Value values, scale;  // int8; the scale keeps the reduced axes as 1
};

Quantized quantize(Value x, Ints axes, const AbsMaxQuantizer& q) {
  Value scale = q.high / (reduce_max(abs(x), std::move(axes), true) + q.epsilon);
  return {convert(clamp(unary(Op::round_nearest_even, x * scale), q.low, q.high), DType::i8), scale};
}

// Two values a byte along an axis, the low half first.
Value unpack_int4(Value packed, int64_t length, int64_t axis) {
  axis = wrap_axis(axis, packed.rank());
  auto integer = [&](double value) { return scalar(packed.graph(), packed.dtype(), value); };
  auto with_sign = [&](Value v) { return binary(Op::xor_, binary(Op::and_, v, integer(15)), integer(8)) - 8; };
  Value pairs = stack({with_sign(packed), with_sign(binary(Op::shift_right_arithmetic, packed, integer(4)))}, axis + 1);
  Ints extents = packed.shape().extents();
  extents[static_cast<size_t>(axis)] *= 2;
  return slice_axis(reshape(pairs, extents), axis, 0, length);
}

// (values - zero) * scale, where group `groups[i]` of the axis has the scale and zero of position i.
Value dequantize(Value values, Value scale, Value zero, Value groups, int64_t axis) {
  Value index = convert(groups, DType::i32), wide = take(scale, index, axis);
  return (convert(values, wide.dtype()) - convert(take(zero, index, axis), wide.dtype())) * wide;
}

int64_t block_count(int64_t extent, int64_t block) { return extent / block + (extent % block != 0 ? 1 : 0); }

Value integer_weight(Call& c, const char* name, Shape shape) {
  return c.weight(name, std::move(shape), {.trainable = false, .raw = true, .dtype = DType::i8});
}

// A kernel [rows, columns] with the bias between its variables, as they are stored.
struct Kernel {
  QuantizedTable table;
  Value bias;
};

Kernel read_kernel(Call& c, const Quantization& q, const Ints& stored, const Ints& scale, int64_t rows, int64_t columns, const Ints& bias) {
  Kernel out;
  Value packed = integer_weight(c, "kernel", stored);
  out.table.values = q.bits == 4 ? unpack_int4(packed, columns, -1) : packed;
  if (!bias.empty()) out.bias = c.weight("bias", bias);
  Ints scale_shape = q.block > 0 ? Ints{block_count(rows, q.block), columns} : scale;
  out.table.scale = c.weight("kernel_scale", scale_shape, {.trainable = false});
  if (q.block > 0) {
    out.table.zero = integer_weight(c, "kernel_zero", scale_shape);
    out.table.groups = c.weight("g_idx", {rows}, {.trainable = false, .raw = true, .dtype = DType::f32});
  }
  return out;
}

Value float_kernel(const Kernel& kernel, DType dtype) {
  const auto& [values, scale, zero, groups] = kernel.table;
  return convert(zero ? dequantize(values, scale, zero, groups, 0) : convert(values, dtype) / scale, dtype);
}

AbsMaxQuantizer read_quantizer(const Config& layer, const Json& json) {
  Config outer(json, layer.where());
  if (outer.text("class_name", "") != "AbsMaxQuantizer") layer.unsupported("activation quantizer {} is not done", escape(json.dump(), 60));
  Config config(outer.at("config"), layer.where());
  AbsMaxQuantizer out;
  out.epsilon = config.number("epsilon", out.epsilon);
  if (config.has("value_range")) {
    auto range = config.numbers("value_range");
    if (range.size() != 2) layer.invalid("'value_range' is two numbers");
    out.low = range[0];
    out.high = range[1];
  }
  if (config.text("output_dtype", "int8") != "int8" || out.low < -128 || out.high > 127)
    layer.unsupported("inputs are quantized to int8 only");
  return out;
}

}  // namespace

std::optional<Quantization> read_quantization(const Call& c, bool quantizes_inputs) {
  const std::string& mode = c.policy.quantization;
  if (mode.empty()) return {};
  if (has_lora(c) && c.lowering.fit != nullptr) c.config.unsupported("LoRA on a quantized layer is not trained");
  if (has_lora(c) && !c.lowering.file.merges_lora)
    c.config.unsupported("LoRA on a quantized layer in .h5 is not done; hint: save as .keras, which merges it");
  Quantization out;
  if (mode == "int4") {
    out.bits = 4;
    out.block = c.policy.block_size;
  } else if (mode != "int8") {
    c.config.unsupported("quantization '{}' is not done; hint: int8 and int4 are", escape(mode));
  }
  if (out.bits == 8 || quantizes_inputs) out.inputs.emplace();
  const Json& given = c.config.get("quantization_config");
  if (!given.is_null()) {
    Config config(Config(given, c.config.where()).at("config"), c.config.where());
    out.inputs.reset();
    if (config.has("activation_quantizer")) out.inputs = read_quantizer(c.config, config.at("activation_quantizer"));
    if (out.bits == 4) out.block = config.integer("block_size", -1);
  }
  if (out.block == 0 || out.block < -1) c.config.invalid("the block size is positive or -1; got {}", out.block);
  return out;
}

Value quantized_dense(Call& c, const Quantization& q, Value x, int64_t units, bool use_bias) {
  int64_t rows = x.extent(-1), stored = q.bits == 4 ? (units + 1) / 2 : units;
  Kernel kernel = read_kernel(c, q, {rows, stored}, {units}, rows, units, use_bias ? Ints{units} : Ints{});
  auto product = [&](Value a, Value b) { return dot_general(a, b, {{}, {}, {a.rank() - 1}, {0}}); };
  Value y;
  if (q.block > 0) {
    y = product(x, float_kernel(kernel, x.dtype()));
  } else if (q.inputs) {
    Quantized input = quantize(x, {-1}, *q.inputs);
    y = product(convert(input.values, DType::i32), convert(kernel.table.values, DType::i32));
    y = convert(y, x.dtype()) / (kernel.table.scale * input.scale);
  } else {
    y = product(x, convert(kernel.table.values, x.dtype())) / kernel.table.scale;
  }
  return kernel.bias ? y + kernel.bias : y;
}

Value quantized_einsum_dense(Call& c, const Quantization& q, Value x, const std::string& equation, const EinsumShapes& shapes) {
  const Ints &kernel_extents = shapes.kernel, &reduced = shapes.reduced;
  int64_t rows = 1, columns = 1;
  for (size_t i = 0; i < kernel_extents.size(); ++i) {
    int64_t& side = includes(shapes.kernel_reduced, static_cast<int64_t>(i)) ? rows : columns;
    side = Shape({side, kernel_extents[i]}).elements();
  }
  bool packed = q.bits == 4;
  Kernel kernel = read_kernel(c, q, packed ? Ints{rows, (columns + 1) / 2} : kernel_extents, packed ? Ints{columns} : shapes.kernel_scale,
                              rows, columns, shapes.bias);
  // The input's scale in the output's axes: 1 where the input has no such label.
  auto in_output = [&](Value scale) {
    Value kept = squeeze(scale, reduced);
    Ints order, extents;
    for (int64_t axis : shapes.input_axes) {
      if (axis >= 0) order.push_back(axis - std::count_if(reduced.begin(), reduced.end(), [&](int64_t r) { return r < axis; }));
      extents.push_back(axis >= 0 ? x.extent(axis) : 1);
    }
    return reshape(transpose(kept, order), extents);
  };
  Value y;
  if (packed) {
    Value weights = reshape(float_kernel(kernel, x.dtype()), kernel_extents);
    if (q.inputs && q.block < 0) {
      Quantized input = quantize(x, reduced, *q.inputs);
      y = einsum(equation, {convert(input.values, x.dtype()), weights}) / in_output(input.scale);
    } else {
      y = einsum(equation, {x, weights});
    }
  } else if (q.inputs) {
    Quantized input = quantize(x, reduced, *q.inputs);
    y = einsum(equation, {convert(input.values, DType::i32), convert(kernel.table.values, DType::i32)});
    y = convert(y, x.dtype()) / (in_output(input.scale) * kernel.table.scale);
  } else {
    y = einsum(equation, {x, convert(kernel.table.values, x.dtype())}) / kernel.table.scale;
  }
  return kernel.bias ? y + kernel.bias : y;
}

QuantizedTable quantized_table(Call& c, const Quantization& q, int64_t rows, int64_t columns) {
  QuantizedTable out;
  Value stored = integer_weight(c, "embeddings", {rows, q.bits == 4 ? (columns + 1) / 2 : columns});
  out.values = q.bits == 4 ? unpack_int4(stored, columns, -1) : stored;
  Ints scale = q.block > 0 ? Ints{rows, block_count(columns, q.block)} : Ints{rows};
  out.scale = c.weight("embeddings_scale", scale, {.trainable = false, .raw = true});
  if (q.block > 0) {
    out.zero = integer_weight(c, "embeddings_zero", scale);
    out.groups = c.weight("g_idx", {columns}, {.trainable = false, .raw = true, .dtype = DType::f32});
  }
  return out;
}

Value look_up(const QuantizedTable& table, Value indices, DType dtype) {
  Value values = convert(take(table.values, indices, 0), dtype), scale = take(table.scale, indices, 0);
  Value y = table.zero ? dequantize(values, scale, take(table.zero, indices, 0), table.groups, -1)
                       : convert(values, scale.dtype()) / expand_dims(scale, {-1});
  return convert(y, dtype);
}

QuantizedTable quantized_reverse_table(Call& c, const Quantization& q, int64_t rows, int64_t columns) {
  QuantizedTable out;
  Value stored = integer_weight(c, "reverse_embeddings", {q.bits == 4 ? (columns + 1) / 2 : columns, rows});
  out.values = q.bits == 4 ? unpack_int4(stored, columns, 0) : stored;
  Ints scale = q.block > 0 ? Ints{block_count(columns, q.block), rows} : Ints{rows};
  out.scale = c.weight("reverse_embeddings_scale", scale, {.trainable = false, .raw = true});
  if (q.block > 0) out.zero = c.weight("reverse_embeddings_zero", scale, {.trainable = false, .raw = true});
  return out;
}

Value score(const Quantization& q, const QuantizedTable& table, const QuantizedTable* reverse, Value x, DType dtype) {
  // [columns, rows]
  Value kernel = reverse != nullptr ? reverse->values : transpose(table.values, {1, 0});
  Value scale = reverse != nullptr ? reverse->scale : table.scale, input_scale = scalar(x.graph(), x.dtype(), 1);
  if (q.block > 0) {
    if (reverse == nullptr) scale = transpose(scale, {1, 0});
    kernel = dequantize(kernel, scale, reverse != nullptr ? reverse->zero : transpose(table.zero, {1, 0}), table.groups, 0);
  }
  Value input = x;
  if (q.inputs) {
    Quantized quantized = quantize(x, {-1}, *q.inputs);
    input_scale = quantized.scale;
    input = quantized.values;
  }
  DType common = q.block < 0 && q.inputs ? DType::i32 : is_float(kernel.dtype()) ? kernel.dtype() : x.dtype();
  Value y = convert(matmul(convert(input, common), convert(kernel, common)), dtype);
  return q.block > 0 ? y / convert(input_scale, dtype) : y / convert(convert(input_scale, scale.dtype()) * scale, dtype);
}

}  // namespace tutti::keras
