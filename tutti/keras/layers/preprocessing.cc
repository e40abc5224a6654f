#include "tutti/keras/layers/families.h"

namespace tutti::keras {

Rows preprocessing_layers() { return {}; }

}  // namespace tutti::keras
