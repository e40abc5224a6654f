#include "tutti/keras/activations.h"

namespace tutti::keras {

Value activate(Call& c, const Json& activation, Value x) {
  if (activation.is_null()) return x;
  if (activation.is_string() && activation.as_string() == "linear") return x;
  if (activation.is_string() && activation.as_string() == "relu") return maximum(x, 0.0);
  c.config.unsupported("activation {} is not known here", activation.dump());
}

}  // namespace tutti::keras
