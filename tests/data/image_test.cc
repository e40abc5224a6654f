#include "tutti/data/image.h"

#include <fmt/format.h>

#include "tests/data/image_files.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

class TensorFlowImages : public testing::TestWithParam<std::string> {};

TEST_P(TensorFlowImages, are_decoded_to_the_same_pixels) {
  Image image = image_of(tensorflow_file(GetParam()));
  Tensor wanted = read_npy(tensorflow_file(GetParam() + ".npy"));
  ASSERT_EQ(Shape({image.height, image.width, image.channels}), wanted.shape());
  auto pixels = wanted.as<uint8_t>();
  EXPECT_EQ(image.pixels, std::vector<uint8_t>(pixels.begin(), pixels.end()));
}

INSTANTIATE_TEST_SUITE_P(image, TensorFlowImages,
                         testing::Values("full.jpg", "halved.jpg", "gray.jpg", "progressive.jpg", "rgb.png", "gray.png", "gray_alpha.png",
                                         "rgba.png", "rgb16.png", "palette.png", "bits.png", "turned_1.jpg", "turned_2.jpg", "turned_3.jpg",
                                         "turned_4.jpg", "turned_5.jpg", "turned_6.jpg", "turned_7.jpg", "turned_8.jpg", "turned_2.png",
                                         "turned_6.png", "turned_7.png"));

TEST(image, decoded_as_tensorflow_does_by_default_it_has_the_same_pixels) {
  for (const std::string name : {"full.jpg", "halved.jpg", "gray.jpg", "progressive.jpg", "cmyk.jpg", "black.jpg", "rgb.png", "gray.png",
                                 "gray_alpha.png", "rgba.png", "rgb16.png", "palette.png", "bits.png"})
    for (int64_t channels : {1, 3}) {
      if ((name == "cmyk.jpg" || name == "black.jpg") && channels == 1) continue;  // TensorFlow refuses that
      const Image found = decode_image(file_bytes(tensorflow_file(name)), {.channels = channels, .like = DecodeLike::tensorflow});
      const Tensor wanted = read_npy(tensorflow_file(fmt::format("{}.{}.npy", name, channels)));
      ASSERT_EQ(Shape({found.height, found.width, found.channels}), wanted.shape()) << name;
      const auto pixels = wanted.as<uint8_t>();
      EXPECT_EQ(found.pixels, std::vector<uint8_t>(pixels.begin(), pixels.end())) << name << " of " << channels;
    }
}

TEST(image, cmyk_and_progressive_jpegs_are_what_pillow_sees) {
  for (const std::string name : {"cmyk", "black", "progressive"}) {
    Image found = image_of(pillow_file(name + ".jpg")), wanted = image_of(pillow_file(name + ".png"));
    ASSERT_EQ(found.pixels.size(), wanted.pixels.size());
    int worst = 0;
    for (size_t i = 0; i < found.pixels.size(); ++i) worst = std::max(worst, std::abs(found.pixels[i] - wanted.pixels[i]));
    EXPECT_EQ(worst, 0) << name;
  }
}

TEST(image, gray_is_pillows_gray) {
  Image found = image_of(pillow_file("picture.png"), 1), wanted = image_of(pillow_file("picture_gray.png"), 1);
  EXPECT_EQ(found.channels, 1);
  EXPECT_EQ(found.pixels, wanted.pixels);
}

TEST(image, what_is_declared_is_checked_before_it_is_decoded) {
  const auto bytes = file_bytes(tensorflow_file("full.jpg"));
  const auto message = [&](const ImageLimits& limits) {
    return message_of<InvalidArgument>([&] { decode_image(bytes, {.limits = limits}); });
  };
  EXPECT_PRED2(contains, message({.pixels = 1000}), "is too large: 53 x 37 pixels");
  EXPECT_PRED2(contains, message({.extent = 50}), "is too large: 53 x 37 pixels; at most 50 a side");
  EXPECT_PRED2(contains, message({.file_bytes = 100}), "at most 100 are decoded");
  auto png = file_bytes(tensorflow_file("rgb.png"));
  for (size_t at : {16, 17, 18, 20, 21, 22}) png[at] = std::byte{0x7f};  // the extents of IHDR, whose CRC is wrong now
  EXPECT_THROW(decode_image(png, {}), InvalidArgument);
}

TEST(image, a_truncated_file_is_an_error_and_not_half_an_image) {
  for (const std::string name : {"full.jpg", "progressive.jpg", "rgb.png"}) {
    const auto bytes = file_bytes(tensorflow_file(name));
    for (size_t size = 0; size + 2 < bytes.size(); size += 1 + bytes.size() / 97)
      EXPECT_THROW(decode_image(std::span(bytes).first(size), {}), Error) << name << " of " << size << " bytes";
  }
}

TEST(image, changed_bytes_never_crash) {
  uint32_t state = 1;
  for (const std::string name : {"halved.jpg", "progressive.jpg", "rgba.png", "palette.png", "turned_6.jpg"})
    for (int i = 0; i < 300; ++i) {
      auto bytes = file_bytes(tensorflow_file(name));
      for (int k = 0; k < 1 + i % 4; ++k) {
        state = state * 1664525 + 1013904223;
        bytes[state / 7 % bytes.size()] = static_cast<std::byte>(state >> 24);
      }
      try {
        decode_image(bytes, {.channels = 1 + 2 * (i % 2),
                             .like = i % 5 < 2 ? DecodeLike::tensorflow : DecodeLike::pillow,
                             .least_height = i % 3,
                             .least_width = i % 3,
                             .limits = {.pixels = 1 << 16}});
      } catch (const Error&) {
      }
    }
}

TEST(image, a_jpeg_may_be_decoded_at_a_fraction_of_its_size) {
  for (const auto& [name, near] : {std::pair<std::string, double>{"turned_6.jpg", 20}, {"gray.jpg", 4}}) {
    const std::string path = tensorflow_file(name);
    const Image whole = image_of(path);
    const auto decoded = [&](int64_t height, int64_t width) {
      return decode_image(file_bytes(path), {.least_height = height, .least_width = width});
    };
    const Image half = decoded(whole.height / 2, whole.width / 2);
    ASSERT_EQ(half.height, (whole.height + 1) / 2) << name;
    ASSERT_EQ(half.width, (whole.width + 1) / 2);
    EXPECT_EQ(decoded(half.height + 1, half.width).height, whole.height) << "half would be too low";
    EXPECT_EQ(decoded(1, 1).height, (whole.height + 7) / 8);
    double difference = 0;
    for (int64_t y = 0; y < whole.height / 2; ++y)
      for (int64_t x = 0; x < whole.width / 2 * 3; ++x) {
        const auto at = [&](int64_t dy, int64_t dx) { return whole.row(2 * y + dy)[static_cast<size_t>((x / 3 * 2 + dx) * 3 + x % 3)]; };
        difference += std::abs(half.row(y)[static_cast<size_t>(x)] - (at(0, 0) + at(0, 1) + at(1, 0) + at(1, 1)) / 4.0);
      }
    EXPECT_LT(4 * difference / static_cast<double>(whole.pixels.size()), near) << "on average, from the mean of four pixels";
  }
}

TEST(image, other_formats_are_named) {
  const auto message = [](const std::string& text) { return message_of<Error>([&] { decode_image(bytes_in(text), {}); }); };
  EXPECT_PRED2(contains, message("GIF89a......"), "this is a GIF");
  EXPECT_PRED2(contains, message("RIFF1234WEBPVP8 "), "this is a WebP");
  EXPECT_PRED2(contains, message("hello\n\x1b[31m"), "this is not one: 'hello\\n");
  EXPECT_PRED2(contains, message(""), "is empty: 0 bytes");
  EXPECT_PRED2(contains, message("\xff\xd8\xff\xe0 nonsense"), "is a broken JPEG: ");
  EXPECT_PRED2(contains, message("\x89PNG\r\n\x1a\n nonsense"), "is a broken PNG: ");
}

TEST(image, names_tell_formats_in_any_case) {
  for (const char* name : {"a.jpg", "b/c.JPEG", "x.Png", ".png"}) EXPECT_TRUE(is_image_name(name)) << name;
  for (const char* name : {"", "jpg", "a.jpgx", "a.txt", "jpeg", "a.gif"}) EXPECT_FALSE(is_image_name(name)) << name;
}

}  // namespace
}  // namespace tutti
