#include "tutti/keras/layers/families.h"

namespace tutti::keras {

Rows attention_layers() { return {}; }

}  // namespace tutti::keras
