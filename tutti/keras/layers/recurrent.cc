#include "tutti/keras/layers/families.h"

namespace tutti::keras {

Rows recurrent_layers() { return {}; }

}  // namespace tutti::keras
