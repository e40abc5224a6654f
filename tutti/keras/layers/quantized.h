// Layers that model.quantize("int8") or ("int4") rewrote: integer kernels with scales, and inputs that are quantized on the fly.
#pragma once

#include <optional>

#include "tutti/keras/layer.h"

namespace tutti::keras {

// keras.quantizers.AbsMaxQuantizer: x * high / (max|x| + epsilon), rounded and clipped.
struct AbsMaxQuantizer {
  double low = -127, high = 127, epsilon = 1e-7;
};

struct Quantization {
  int bits = 8;                           // 8, or 4: two values a byte
  int64_t block = -1;                     // int4: rows that share a scale and a zero point; -1: a scale a channel, no zero point
  std::optional<AbsMaxQuantizer> inputs;  // absent: inputs stay floats
};

// From the dtype policy and 'quantization_config'; absent for plain policies. `quantizes_inputs`: what int4 does without a config.
std::optional<Quantization> read_quantization(const Call& c, bool quantizes_inputs = false);

// Each asks for all of its layer's weights.
Value quantized_dense(Call& c, const Quantization& q, Value x, int64_t units, bool use_bias);
struct EinsumShapes;
Value quantized_einsum_dense(Call& c, const Quantization& q, Value x, const std::string& equation, const EinsumShapes& shapes);
// indices: integers of any shape.
struct QuantizedTable {
  Value values, scale, zero, groups;  // int8 [rows, columns]; zero and groups only with blocks
};
QuantizedTable quantized_table(Call& c, const Quantization& q, int64_t rows, int64_t columns);
Value look_up(const QuantizedTable& table, Value indices, DType dtype);
// ReversibleEmbedding: x [..., columns] -> [..., rows]; reverse: its own [columns, rows] weights, or absent when they are tied.
QuantizedTable quantized_reverse_table(Call& c, const Quantization& q, int64_t rows, int64_t columns);
Value score(const Quantization& q, const QuantizedTable& table, const QuantizedTable* reverse, Value x, DType dtype);

}  // namespace tutti::keras
