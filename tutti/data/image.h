// JPEG and PNG bytes to pixels. Bytes are hostile until decoded: what they declare is checked before anything is allocated, and whatever is
// wrong with them is an error, never a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tutti {

// Rows of pixels, channels last: gray (1) or red, green, blue (3).
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  // [height, width, channels]
  std::span<const uint8_t> row(int64_t y) const {
    return std::span(pixels).subspan(static_cast<size_t>(y * width * channels), static_cast<size_t>(width * channels));
  }
};

struct ImageLimits {
  uint64_t file_bytes = uint64_t{1} << 28;  // of the encoded image
  int64_t extent = 1 << 16;                 // of a side
  int64_t pixels = int64_t{1} << 27;        // 400 MB decoded
};

// Whose pixels they are, where the libraries differ. pillow: JPEG by the accurate DCT, gray from red, green and blue. tensorflow: as
// tf.io.decode_image has them, which image_dataset_from_directory reads: by the fast DCT, gray as it lies in a JPEG.
enum class DecodeLike { pillow, tensorflow };

struct ImageWish {
  int64_t channels = 3;
  DecodeLike like = DecodeLike::pillow;
  // A JPEG that stays at least so high and wide may be decoded at 1/2, 1/4 or 1/8 of its size, which is faster. 0: at its own.
  int64_t least_height = 0, least_width = 0;
  ImageLimits limits = {};
};

// The pixels as convert("RGB") or convert("L") of Pillow gives them, or TensorFlow, for `channels` 3 or 1: palettes looked up, alpha left
// out, CMYK converted, of 16 bits the upper 8; turned as the EXIF orientation says, which TensorFlow does not. Upsampling of colours is
// smooth. Throws InvalidArgument for broken or too large images and Unsupported for other formats.
Image decode_image(std::span<const std::byte> bytes, const ImageWish& wish);

// The formats that are decoded, by the file's name: .jpg, .jpeg, .png in any case.
bool is_image_name(std::string_view name);

}  // namespace tutti
