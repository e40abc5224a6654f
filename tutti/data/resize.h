// Images to another size, as the libraries do it that people train with. Rows are made one after another, so that whoever takes them can
// put them where they belong.
#pragma once

#include <functional>
#include <span>

#include "tutti/data/image.h"

namespace tutti {

enum class Resize { nearest, bilinear, bicubic };

// tensorflow: tf.image.resize and Keras's Resizing layer: half-pixel centres, no antialiasing, floats (bicubic with TensorFlow's table of
// weights). pillow: Image.resize: antialiased when it shrinks, 8 bits after each of its two passes.
enum class ResizeLike { tensorflow, pillow };

// Row `y` of the result: [width, channels].
using TakeRow = std::function<void(int64_t y, std::span<const float> row)>;

// Calls `take` for the rows 0, ..., height - 1 of the image in its new size.
void resize(const Image& image, int64_t height, int64_t width, Resize method, ResizeLike like, const TakeRow& take);

}  // namespace tutti
