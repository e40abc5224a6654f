#include "tutti/data/image.h"

#include <algorithm>
#include <string>

#include "tutti/base/error.h"
#include "tutti/data/image_codecs.h"

namespace tutti {

namespace {

// Formats people have, so that the refusal can name them.
std::string_view other_format(std::string_view start) {
  if (start.starts_with("GIF8")) return "a GIF";
  if (start.starts_with("BM")) return "a BMP";
  if (start.starts_with("RIFF") && start.size() >= 12 && start.substr(8, 4) == "WEBP") return "a WebP";
  if (start.starts_with("II*\0") || start.starts_with("MM\0*")) return "a TIFF";
  if (start.size() >= 12 && start.substr(4, 4) == "ftyp") return "a HEIF, AVIF or video file";
  return "not one";
}

template <int channels>
Image turned(const Image& image, int orientation) {
  const bool swapped = orientation >= 5;  // rows become columns
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image out{swapped ? image.width : image.height, swapped ? image.height : image.width, channels, {}};
  out.pixels.resize(image.pixels.size());
  // How far the source moves with a column and with a row of the result.
  const int64_t down = (from_below ? -image.width : image.width) * channels, across = from_right ? -channels : channels;
  const int64_t column = swapped ? down : across, row = swapped ? across : down;
  const int64_t begin = (from_below ? (image.height - 1) * image.width * channels : 0) + (from_right ? (image.width - 1) * channels : 0);
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x, to += channels) std::copy_n(image.pixels.data() + begin + y * row + x * column, channels, to);
  return out;
}

}  // namespace

void check_image_size(uint64_t height, uint64_t width, const ImageLimits& limits) {
  const auto side = static_cast<uint64_t>(limits.extent), pixels = static_cast<uint64_t>(limits.pixels);
  if (height == 0 || width == 0) fail<InvalidArgument>("image", "has no pixels: {} x {}", width, height);
  if (height > side || width > side || width * height > pixels)
    fail<InvalidArgument>("image", "is too large: {} x {} pixels; at most {} a side and {} in all are decoded", width, height, side,
                          pixels);
}

Image upright(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  return image.channels == 1 ? turned<1>(image, orientation) : turned<3>(image, orientation);
}

int exif_orientation(std::span<const uint8_t> tiff) {
  constexpr uint32_t orientation_tag = 0x0112, short_type = 3;
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == 'I';
  const auto number = [&](size_t at, size_t bytes) {
    uint32_t out = 0;
    for (size_t i = 0; i < bytes; ++i) out = out << 8 | tiff[at + (little ? bytes - 1 - i : i)];
    return out;
  };
  const size_t directory = number(4, 4);
  if (directory > tiff.size() - 2) return 1;
  const uint32_t entries = number(directory, 2);
  for (size_t at = directory + 2, i = 0; i < entries && at + 12 <= tiff.size(); at += 12, ++i)
    if (number(at, 2) == orientation_tag && number(at + 2, 2) == short_type) {
      const uint32_t value = number(at + 8, 2);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  return 1;
}

Image decode_image(std::span<const std::byte> bytes, const ImageWish& wish) {
  if (bytes.size() > wish.limits.file_bytes)
    fail<InvalidArgument>("image", "is too large: {} bytes; at most {} are decoded", bytes.size(), wish.limits.file_bytes);
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 16));
  if (start.empty()) fail<InvalidArgument>("image", "is empty: 0 bytes");
  if (start.starts_with("\xff\xd8\xff")) return decode_jpeg(bytes, wish);
  if (start.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(bytes, wish);
  fail<Unsupported>("image", "JPEG and PNG images are read; by its first bytes this is {}: '{}'", other_format(start),
                    escape(start.substr(0, 8)));
}

bool is_image_name(std::string_view name) {
  std::string lower(name.substr(name.size() - std::min<size_t>(name.size(), 5)));
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return lower.ends_with(".jpg") || lower.ends_with(".png") || lower == ".jpeg";
}

}  // namespace tutti
