// What image.cc and the decoders of the formats share.
#pragma once

#include "tutti/data/image.h"

namespace tutti {

// Throws unless an image of these extents may be decoded.
void check_image_size(uint64_t height, uint64_t width, const ImageLimits& limits);

// 1 to 8 as EXIF counts orientations; 1, upright, for whatever is not understood. `tiff` is the block behind "Exif\0\0".
int exif_orientation(std::span<const uint8_t> tiff);

// The image as it is to be seen.
Image upright(Image image, int orientation);

// Gray as Pillow's convert("L").
inline uint8_t luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

Image decode_jpeg(std::span<const std::byte> bytes, const ImageWish& wish);
Image decode_png(std::span<const std::byte> bytes, const ImageWish& wish);

}  // namespace tutti
