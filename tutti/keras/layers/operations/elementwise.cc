#include "tutti/keras/layers/families.h"

namespace tutti::keras {

Rows elementwise_operations() { return {}; }

}  // namespace tutti::keras
