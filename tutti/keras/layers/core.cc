// Dense and its neighbours.
#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/einsum_dense.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/lora.h"
#include "tutti/keras/layers/quantized.h"
#include "tutti/keras/promote.h"

namespace tutti::keras {

namespace {

constexpr int64_t most_units = int64_t{1} << 40;

Outputs dense(Call& c) {
  Value x = c.x();  // [batch, ..., in]
  if (x.rank() < 1) c.config.invalid("takes at least rank 1");
  int64_t units = c.config.positive("units", most_units);
  bool use_bias = c.config.flag("use_bias", true);
  Value y;
  if (auto quantization = read_quantization(c)) {
    y = quantized_dense(c, *quantization, convert(x, c.policy.compute), units, use_bias);
  } else {
    Value kernel = c.weight("kernel", {x.extent(-1), units}, {.trainable = !has_lora(c)});
    Value bias = use_bias ? c.weight("bias", {units}) : Value{};
    y = dot_general(convert(x, kernel.dtype()), with_lora(c, kernel), {{}, {}, {x.rank() - 1}, {0}});
    if (bias) y = y + bias;
  }
  return activate(c, c.config.get("activation"), y);
}

// Indices come as they are: a float index in half precision would be another index.
Value as_indices(Value x) { return x.dtype() == DType::i32 || x.dtype() == DType::i64 ? x : convert(x, DType::i32); }

Signal with_zero_mask(Call& c, Value y) {
  return {y, c.config.flag("mask_zero", false) ? compare(c.uncast_x(), 0, Direction::NE) : Value{}};
}

Outputs embedding(Call& c) {
  if (c.config.flag("sparse", false)) c.config.unsupported("sparse = true gives sparse tensors, which are not read");
  int64_t rows = c.config.positive("input_dim", most_units), columns = c.config.positive("output_dim", most_units);
  Value indices = as_indices(c.uncast_x());
  if (auto quantization = read_quantization(c)) {
    QuantizedTable table = quantized_table(c, *quantization, rows, columns);
    return with_zero_mask(c, look_up(table, indices, c.policy.compute));
  }
  Value table = with_lora(c, c.weight("embeddings", {rows, columns}, {.trainable = !has_lora(c), .raw = true}), "embeddings");
  return with_zero_mask(c, convert(take(table, indices, 0), c.policy.compute));
}

DType read_dtype(const Config& config, std::string_view key, DType otherwise) {
  if (!config.has(key)) return otherwise;
  std::string name = config.text(key);
  auto dtype = dtype_from_numpy(name);
  if (!dtype || !is_float(*dtype)) config.unsupported("{} '{}' is not a float dtype", key, escape(name));
  return *dtype;
}

Value soft_capped(const Config& config, Value logits) {
  if (!config.has("logit_soft_cap")) return logits;
  double cap = config.number("logit_soft_cap");
  return tanh(logits / cap) * cap;
}

// Called with reverse=True: from vectors back to one score per index.
Outputs reversible_embedding(Call& c) {
  int64_t rows = c.config.positive("input_dim", most_units), columns = c.config.positive("output_dim", most_units);
  bool tied = c.config.flag("tie_weights", true);
  const Argument* given = c.arguments.find(1, "reverse");
  bool reverse = given != nullptr && given->kind == Argument::Kind::constant && given->constant.is_bool() && given->constant.as_bool();
  Value x = c.uncast_x();
  if (auto quantization = read_quantization(c, true)) {
    QuantizedTable table = quantized_table(c, *quantization, rows, columns), reverse_table;
    if (!tied) reverse_table = quantized_reverse_table(c, *quantization, rows, columns);
    if (!reverse) return with_zero_mask(c, look_up(table, as_indices(x), c.policy.compute));
    return soft_capped(c.config, score(*quantization, table, tied ? nullptr : &reverse_table, x, c.policy.compute));
  }
  Value table = c.weight("embeddings", {rows, columns}, {.trainable = !has_lora(c), .raw = true}), kernel;
  if (!tied) kernel = c.weight("reverse_embeddings", {columns, rows}, {.raw = true});
  table = with_lora(c, table, "embeddings");
  if (tied) kernel = transpose(table, {1, 0});
  if (!reverse) return with_zero_mask(c, convert(take(table, as_indices(x), 0), c.policy.compute));
  DType common = read_dtype(c.config, "reverse_dtype", result_type({x.dtype(), kernel.dtype()}));
  return soft_capped(c.config, matmul(convert(x, common), convert(kernel, common)));
}

Outputs identity_layer(Call& c) { return c.inputs(); }

Outputs masking(Call& c) {
  Value x = c.x();  // [batch, time, ..., features]
  if (x.rank() < 1) c.config.invalid("takes at least rank 1");
  Value kept = any(compare(x, c.config.number("mask_value", 0), Direction::NE), {-1}, true);
  return Signal{select(kept, x, full_like(x, 0)), squeeze(kept, {-1})};
}

}  // namespace

Rows core_layers() {
  static const LayerRow rows[] = {
      {"Dense", dense, Masking::pass, "units activation use_bias lora_rank lora_alpha quantization_config",
       "float8, GPTQ and AWQ quantization: refused"},
      {"EinsumDense", einsum_dense, Masking::drop, "equation output_shape activation bias_axes lora_rank lora_alpha quantization_config",
       "float8, GPTQ (gptq_unpacked_column_size) and AWQ quantization: refused"},
      {"Embedding", embedding, Masking::own, "input_dim output_dim mask_zero input_length sparse lora_rank lora_alpha quantization_config",
       "sparse = true: refused; float8, GPTQ and AWQ quantization: refused"},
      {"ReversibleEmbedding", reversible_embedding, Masking::own,
       "input_dim output_dim mask_zero tie_weights reverse_dtype logit_soft_cap lora_rank lora_alpha quantization_config",
       "float8, GPTQ and AWQ quantization: refused", "reverse"},
      {"Identity", identity_layer, Masking::own, ""},
      {"Masking", masking, Masking::own, "mask_value"},
  };
  return rows;
}

}  // namespace tutti::keras
