#include "tutti/keras/layers/families.h"

namespace tutti::keras {

Rows pooling_layers() { return {}; }

}  // namespace tutti::keras
