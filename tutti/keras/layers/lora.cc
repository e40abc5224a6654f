#include "tutti/keras/layers/lora.h"

#include "tutti/keras/lower.h"

namespace tutti::keras {

bool has_lora(const Call& c) { return c.config.has("lora_rank") && !c.lowering.file.lora_is_merged; }

Value with_lora(Call& c, Value kernel) {
  if (c.lowering.fit != nullptr && c.config.has("lora_rank"))
    c.config.unsupported("LoRA is not trained here; hint: save the model without it, its factors merged into the kernel");
  if (!has_lora(c)) return kernel;
  int64_t rank = c.config.integer("lora_rank");
  if (rank < 1) c.config.invalid("'lora_rank' is positive; got {}", rank);
  Ints extents = kernel.shape().extents();
  extents.back() = rank;
  Value a = c.weight("lora_kernel_a", extents, {.raw = true, .dtype = DType::f32});
  Value b = c.weight("lora_kernel_b", {rank, kernel.extent(-1)}, {.raw = true, .dtype = DType::f32});
  double scale = c.config.number("lora_alpha", static_cast<double>(rank)) / static_cast<double>(rank);
  Value delta = dot_general(a, b, {{}, {}, {a.rank() - 1}, {0}}) * scale;
  return convert(convert(kernel, DType::f32) + delta, kernel.dtype());
}

}  // namespace tutti::keras
