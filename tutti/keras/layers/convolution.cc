#include "tutti/keras/layers/families.h"

namespace tutti::keras {

Rows convolution_layers() { return {}; }

}  // namespace tutti::keras
