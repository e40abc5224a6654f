// Pillow's Image.resize for 8-bit images, to the last bit.
#pragma once

#include "tutti/data/resize.h"

namespace tutti {

void resize_as_pillow(const Image& image, int64_t height, int64_t width, Resize method, const TakeRow& take);

}  // namespace tutti
