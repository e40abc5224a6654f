// libpng behind decode_png: as in jpeg.cc, errors are longjmps and what they pass over has no destructors.
#include <png.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "tutti/base/error.h"
#include "tutti/data/image_codecs.h"

namespace tutti {

namespace {

struct PngDecoder {
  std::span<const std::byte> bytes;
  size_t at = 0;
  std::string message;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_bytep> rows;
  Image image;
  ~PngDecoder() { png_destroy_read_struct(png ? &png : nullptr, info ? &info : nullptr, nullptr); }
};

void give_up_on_png(png_structp png, png_const_charp text) {
  static_cast<PngDecoder*>(png_get_error_ptr(png))->message = text;
  png_longjmp(png, 1);
}

void ignore_png_warning(png_structp, png_const_charp) {}

void read_png_bytes(png_structp png, png_bytep to, size_t count) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (count > decoder.bytes.size() - decoder.at) png_error(png, "it ends too early");
  std::memcpy(to, decoder.bytes.data() + decoder.at, count);
  decoder.at += count;
}

bool read_header(PngDecoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png))) return false;
  png_set_read_fn(decoder.png, &decoder, read_png_bytes);
  // Text and profiles are not asked for; what is compressed in them is not unpacked.
  constexpr png_byte unwanted[] = "iCCP\0iTXt\0sPLT\0tEXt\0zTXt";
  png_set_keep_unknown_chunks(decoder.png, PNG_HANDLE_CHUNK_NEVER, unwanted, 5);
  png_set_chunk_malloc_max(decoder.png, 1 << 20);
  png_set_user_limits(decoder.png, 0x7fffffff, 0x7fffffff);
  png_read_info(decoder.png, decoder.info);
  return true;
}

bool read_pixels(PngDecoder& decoder) {
  png_structp png = decoder.png;
  if (setjmp(png_jmpbuf(png))) return false;
  const int type = png_get_color_type(png, decoder.info);
  png_set_strip_16(png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA) {
    png_set_expand_gray_1_2_4_to_8(png);
    if (decoder.image.channels == 3) png_set_gray_to_rgb(png);
  } else if (decoder.image.channels == 1) {
    png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  }
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, decoder.info);
  const auto row = static_cast<size_t>(decoder.image.width * decoder.image.channels);
  if (png_get_rowbytes(png, decoder.info) != row) png_error(png, "its rows have an unexpected size");
  decoder.rows.resize(static_cast<size_t>(decoder.image.height));
  for (size_t y = 0; y < decoder.rows.size(); ++y) decoder.rows[y] = decoder.image.pixels.data() + y * row;
  png_read_image(png, decoder.rows.data());
  png_read_end(png, decoder.info);
  return true;
}

int orientation_of(const PngDecoder& decoder) {
  png_bytep exif = nullptr;
  png_uint_32 size = 0;
  if (png_get_eXIf_1(decoder.png, decoder.info, &size, &exif) == 0 || exif == nullptr) return 1;
  return exif_orientation({exif, size});
}

}  // namespace

Image decode_png(std::span<const std::byte> bytes, const ImageWish& wish) {
  PngDecoder decoder;
  decoder.bytes = bytes;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, give_up_on_png, ignore_png_warning);
  if (decoder.png != nullptr) decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) throw std::bad_alloc();
  const auto refuse = [&] { fail<InvalidArgument>("image", "is a broken PNG: {}", escape(decoder.message)); };
  if (!read_header(decoder)) refuse();
  Image& image = decoder.image;
  const bool gray_by_libpng = wish.channels == 1 && wish.like == DecodeLike::tensorflow;
  image = {png_get_image_height(decoder.png, decoder.info), png_get_image_width(decoder.png, decoder.info), gray_by_libpng ? 1 : 3, {}};
  check_image_size(static_cast<uint64_t>(image.height), static_cast<uint64_t>(image.width), wish.limits);
  constexpr size_t most_deflated = 1032;  // bytes that a compressed one can stand for
  if (static_cast<size_t>(image.height) * png_get_rowbytes(decoder.png, decoder.info) / most_deflated > bytes.size())
    fail<InvalidArgument>("image", "is a broken PNG: {} x {} pixels do not fit in {} bytes", image.width, image.height, bytes.size());
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  if (!read_pixels(decoder)) refuse();
  if (image.channels != wish.channels) {
    const uint8_t* from = image.pixels.data();
    const auto count = static_cast<size_t>(image.height * image.width);
    for (size_t i = 0; i < count; ++i, from += 3) image.pixels[i] = luma(from[0], from[1], from[2]);
    image.pixels.resize(count);
    image.channels = 1;
  }
  return upright(std::move(image), orientation_of(decoder));
}

}  // namespace tutti
