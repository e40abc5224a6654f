// Dense and its neighbours.
#include "tutti/base/error.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/families.h"

namespace tutti::keras {

namespace {

Outputs dense(Call& c) {
  Value x = c.x();  // [batch, ..., in]
  int64_t units = c.config.integer("units");
  Value kernel = c.weight("kernel", {x.extent(-1), units});
  Value y = dot_general(x, kernel, {{}, {}, {x.rank() - 1}, {0}});
  if (c.config.flag("use_bias", true)) y = y + c.weight("bias", {units});
  return activate(c, c.config.get("activation"), y);
}

// LoRA is merged into the kernel when Keras saves.
const LayerRow rows[] = {
    {"Dense", dense, Masking::pass, "units activation use_bias lora_rank lora_alpha"},
};

}  // namespace

Rows core_layers() { return rows; }

}  // namespace tutti::keras
