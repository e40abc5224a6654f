// libjpeg (turbo) behind decode_jpeg: it reports errors by a longjmp, so what it runs in holds nothing that needs a destructor.
#include <csetjmp>
#include <cstdio>
// libjpeg wants FILE.
#include <jerror.h>
#include <jpeglib.h>

#include <memory>
#include <string>

#include "tutti/base/error.h"
#include "tutti/data/image_codecs.h"

namespace tutti {

namespace {

struct JpegDecoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf on_error{};
  char message[JMSG_LENGTH_MAX] = "";

  DecodeLike like = DecodeLike::pillow;

  // The buffers of what is read; owned here because a longjmp passes over the frames of the functions below.
  std::vector<uint8_t> line;
  Image image;
};

constexpr unsigned int most_scans = 200;  // of a progressive image; each costs a pass over all of it

JpegDecoder& decoder_of(j_common_ptr info) { return *static_cast<JpegDecoder*>(info->client_data); }

[[noreturn]] void give_up(j_common_ptr info) {
  (*info->err->format_message)(info, decoder_of(info).message);
  std::longjmp(decoder_of(info).on_error, 1);
}

[[noreturn]] void give_up_saying(JpegDecoder& decoder, const char* why) {
  std::snprintf(decoder.message, sizeof decoder.message, "%s", why);
  std::longjmp(decoder.on_error, 1);
}

// Missing or damaged data would become gray pixels, and a prediction nobody should trust. Other warnings are of no harm.
void take_message(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const bool damage = code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC;
  if (level < 0 && damage) give_up(info);
}

void watch_scans(j_common_ptr info) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number > static_cast<int>(most_scans)) give_up_saying(decoder_of(info), "it has too many scans");
}

// Adobe's CMYK is stored inverted: what is left of the light. TensorFlow cuts off where Pillow rounds.
void cmyk_to_rgb(const uint8_t* from, uint8_t* to, int64_t width, bool inverted, DecodeLike like) {
  const auto times = [&](uint32_t a, uint32_t b) {
    if (like == DecodeLike::tensorflow) return static_cast<uint8_t>(a * b / 255);
    const uint32_t product = a * b + 128;
    return static_cast<uint8_t>((product + (product >> 8)) >> 8);
  };
  for (int64_t x = 0; x < width; ++x, from += 4, to += 3)
    for (int c = 0; c < 3; ++c)
      to[c] = inverted ? times(from[c], from[3]) : times(static_cast<uint32_t>(255 - from[c]), static_cast<uint32_t>(255 - from[3]));
}

// The line as read, in the channels that are wanted.
void convert_line(const JpegDecoder& decoder, uint8_t* to, int64_t channels) {
  const uint8_t* from = decoder.line.data();
  const auto width = static_cast<int64_t>(decoder.info.output_width);
  std::vector<uint8_t> colours;
  if (decoder.info.out_color_space == JCS_CMYK) {
    uint8_t* rgb = to;
    if (channels == 1) {
      colours.resize(static_cast<size_t>(width) * 3);
      rgb = colours.data();
    }
    cmyk_to_rgb(from, rgb, width, decoder.info.saw_Adobe_marker, decoder.like);
    from = rgb;
    if (channels == 3) return;
  }
  for (int64_t x = 0; x < width; ++x, from += 3) to[x] = luma(from[0], from[1], from[2]);
}

int orientation_of(const jpeg_decompress_struct& info) {
  constexpr std::string_view mark("Exif\0\0", 6);
  for (jpeg_saved_marker_ptr marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view text(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (marker->marker == JPEG_APP0 + 1 && text.starts_with(mark))
      return exif_orientation({marker->data + mark.size(), marker->data_length - mark.size()});
  }
  return 1;
}

// As small as the wish allows; knows the extents of the result then. `swapped`: rows become columns when it is turned upright.
void choose_scale(jpeg_decompress_struct& info, bool swapped, const ImageWish& wish) {
  const int64_t height = swapped ? wish.least_width : wish.least_height, width = swapped ? wish.least_height : wish.least_width;
  info.scale_num = 1;
  for (info.scale_denom = wish.least_height > 0 && wish.least_width > 0 ? 8 : 1;; info.scale_denom /= 2) {
    jpeg_calc_output_dimensions(&info);
    if (info.scale_denom == 1 || (info.output_height >= height && info.output_width >= width)) return;
  }
}

// Gives false when libjpeg gave up; the message is in the decoder. Everything that has a destructor is the decoder's.
bool read_header(JpegDecoder& decoder, std::span<const std::byte> bytes) {
  if (setjmp(decoder.on_error)) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.info.client_data = &decoder;
  jpeg_mem_src(&decoder.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_save_markers(&decoder.info, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&decoder.info, TRUE);
  return true;
}

bool read_pixels(JpegDecoder& decoder, int64_t channels) {
  jpeg_decompress_struct& info = decoder.info;
  if (setjmp(decoder.on_error)) return false;
  jpeg_start_decompress(&info);
  const bool direct = info.out_color_components == channels;
  if (!direct) decoder.line.resize(size_t{info.output_width} * static_cast<size_t>(info.out_color_components));
  const size_t row = size_t{info.output_width} * static_cast<size_t>(channels);
  while (info.output_scanline < info.output_height) {
    uint8_t* to = decoder.image.pixels.data() + info.output_scanline * row;
    JSAMPROW target = direct ? to : decoder.line.data();
    jpeg_read_scanlines(&info, &target, 1);
    if (!direct) convert_line(decoder, to, channels);
  }
  jpeg_finish_decompress(&info);
  return true;
}

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, const ImageWish& wish) {
  auto decoder = std::make_unique<JpegDecoder>();
  jpeg_decompress_struct& info = decoder->info;
  info.err = jpeg_std_error(&decoder->errors);
  info.client_data = decoder.get();
  decoder->like = wish.like;
  decoder->errors.error_exit = give_up;
  decoder->errors.emit_message = take_message;
  struct Destroy {
    jpeg_decompress_struct* info;
    ~Destroy() { jpeg_destroy_decompress(info); }
  } destroy{&info};
  jpeg_progress_mgr progress{};
  progress.progress_monitor = watch_scans;

  const auto refuse = [&] { fail<InvalidArgument>("image", "is a broken JPEG: {}", escape(decoder->message)); };
  if (!read_header(*decoder, bytes)) refuse();
  ImageLimits own = wish.limits;
  if (jpeg_has_multiple_scans(&info)) own.pixels /= 2;  // libjpeg keeps the whole image, as 16-bit coefficients
  check_image_size(info.image_height, info.image_width, own);
  info.progress = &progress;
  const bool tensorflow = wish.like == DecodeLike::tensorflow;
  info.dct_method = tensorflow ? JDCT_IFAST : JDCT_ISLOW;
  const bool four = info.num_components == 4;
  info.out_color_space = four ? JCS_CMYK : wish.channels == 1 && (tensorflow || info.num_components == 1) ? JCS_GRAYSCALE : JCS_RGB;
  const int orientation = orientation_of(info);  // markers are gone when all is read
  choose_scale(info, orientation >= 5, wish);
  decoder->image = {info.output_height, info.output_width, wish.channels, {}};
  decoder->image.pixels.resize(size_t{info.output_height} * info.output_width * static_cast<size_t>(wish.channels));
  if (!read_pixels(*decoder, wish.channels)) refuse();
  return upright(std::move(decoder->image), orientation);
}

}  // namespace tutti
