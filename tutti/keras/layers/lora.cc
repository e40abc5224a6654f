#include "tutti/keras/layers/lora.h"

#include <algorithm>

#include "tutti/base/saturate.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

bool are_zeros(const Scope& scope, const std::string& name) {
  for (const auto& variable : scope.variables())
    if (variable->name == name && !variable->value.empty())
      return std::ranges::all_of(std::as_const(variable->value).as<float>(), [](float x) { return x == 0; });
  return false;
}

}  // namespace

bool has_lora(const Call& c) { return c.config.has("lora_rank"); }

Value with_lora(Call& c, Value kernel, std::string_view option) {
  if (!has_lora(c)) return kernel;
  const int64_t rank = c.config.integer("lora_rank");
  if (rank < 1) c.config.invalid("'lora_rank' is positive; got {}", rank);
  // A .keras file has no factors: nothing else in it says how large they are.
  const int64_t elements = kernel.shape().elements(), columns = std::max<int64_t>(kernel.extent(-1), 1);
  const int64_t most = std::max<int64_t>(saturating_multiply(16, elements), 1 << 16) / std::max<int64_t>(elements / columns + columns, 1);
  if (rank > most) c.config.invalid("'lora_rank' is at most {} for a kernel {}; got {}", most, to_string(kernel.shape()), rank);
  const double scale = c.config.number("lora_alpha", static_cast<double>(rank)) / static_cast<double>(rank);
  Ints extents = kernel.shape().extents();
  extents.back() = rank;
  const Call::WeightOptions options{.raw = true, .dtype = DType::f32, .option = option, .merge_scale = scale};
  const std::string name = "lora_" + std::string(option);
  Value a = c.weight(name + "_a", extents, options), b = c.weight(name + "_b", {rank, kernel.extent(-1)}, options);
  if (c.lowering.fit == nullptr && are_zeros(c.scope(), name + "_b")) return kernel;
  Value delta = dot_general(a, b, {{}, {}, {a.rank() - 1}, {0}}) * scale;
  return convert(convert(kernel, DType::f32) + delta, kernel.dtype());
}

}  // namespace tutti::keras
