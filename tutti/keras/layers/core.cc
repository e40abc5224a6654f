// Dense and its neighbours.
#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/einsum_dense.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/promote.h"

namespace tutti::keras {

namespace {

int64_t positive(const Config& config, std::string_view key) {
  int64_t value = config.integer(key);
  if (value < 1) config.invalid("'{}' is positive; got {}", key, value);
  return value;
}

Outputs dense(Call& c) {
  Value x = c.x();  // [batch, ..., in]
  if (x.rank() < 1) c.config.invalid("takes at least rank 1");
  int64_t units = positive(c.config, "units");
  Value kernel = c.weight("kernel", {x.extent(-1), units});
  Value y = dot_general(x, kernel, {{}, {}, {x.rank() - 1}, {0}});
  if (c.config.flag("use_bias", true)) y = y + c.weight("bias", {units});
  return activate(c, c.config.get("activation"), y);
}

// Indices come as they are: a float index in half precision would be another index.
Value as_indices(Value x) { return x.dtype() == DType::i32 || x.dtype() == DType::i64 ? x : convert(x, DType::i32); }

Value embedding_table(Call& c) {
  return c.weight("embeddings", {positive(c.config, "input_dim"), positive(c.config, "output_dim")}, {.raw = true});
}

Signal look_up(Call& c, Value table) {
  Value x = c.uncast_x();  // any shape
  Value y = convert(take(table, as_indices(x), 0), c.policy.compute);
  return {y, c.config.flag("mask_zero", false) ? compare(x, 0, Direction::NE) : Value{}};
}

Outputs embedding(Call& c) {
  if (c.config.flag("sparse", false)) c.config.unsupported("sparse = true gives sparse tensors, which are not read");
  return look_up(c, embedding_table(c));
}

DType read_dtype(const Config& config, std::string_view key, DType otherwise) {
  if (!config.has(key)) return otherwise;
  std::string name = config.text(key);
  auto dtype = dtype_from_numpy(name);
  if (!dtype || !is_float(*dtype)) config.unsupported("{} '{}' is not a float dtype", key, escape(name));
  return *dtype;
}

// Called with reverse=True: from vectors back to one score per index.
Outputs reversible_embedding(Call& c) {
  Value table = embedding_table(c), reverse_table;
  if (!c.config.flag("tie_weights", true))
    reverse_table = c.weight("reverse_embeddings", {table.extent(1), table.extent(0)}, {.raw = true});
  const Argument* reverse = c.arguments.find(1, "reverse");
  if (reverse == nullptr || reverse->kind != Argument::Kind::constant || !reverse->constant.is_bool() || !reverse->constant.as_bool())
    return look_up(c, table);
  Value x = c.uncast_x(), kernel = reverse_table ? reverse_table : transpose(table, {1, 0});
  DType common = read_dtype(c.config, "reverse_dtype", result_type({x.dtype(), kernel.dtype()}));
  Value logits = matmul(convert(x, common), convert(kernel, common));
  if (c.config.has("logit_soft_cap")) {
    double cap = c.config.number("logit_soft_cap");
    logits = tanh(logits / cap) * cap;
  }
  return logits;
}

Outputs identity(Call& c) { return c.inputs(); }

Outputs masking(Call& c) {
  Value x = c.x();  // [batch, time, ..., features]
  if (x.rank() < 1) c.config.invalid("takes at least rank 1");
  Value kept = any(compare(x, c.config.number("mask_value", 0), Direction::NE), {-1}, true);
  return Signal{select(kept, x, full_like(x, 0)), squeeze(kept, {-1})};
}

// LoRA is merged into the kernel when Keras saves.
const LayerRow rows[] = {
    {"Dense", dense, Masking::pass, "units activation use_bias lora_rank lora_alpha"},
    {"EinsumDense", einsum_dense, Masking::drop, "equation output_shape activation bias_axes lora_rank lora_alpha"},
    {"Embedding", embedding, Masking::own, "input_dim output_dim mask_zero input_length sparse lora_rank lora_alpha",
     "sparse = true: refused"},
    {"ReversibleEmbedding", reversible_embedding, Masking::own,
     "input_dim output_dim mask_zero tie_weights reverse_dtype logit_soft_cap lora_rank lora_alpha"},
    {"Identity", identity, Masking::own, ""},
    {"Masking", masking, Masking::own, "mask_value"},
};

}  // namespace

Rows core_layers() { return rows; }

}  // namespace tutti::keras
