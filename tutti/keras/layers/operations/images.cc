#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {
Rows image_operations() { return {}; }
}  // namespace tutti::keras
