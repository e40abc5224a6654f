#include "tutti/data/resize.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tests/data/image_files.h"
#include "tutti/base/error.h"
#include "tutti/data/image_sample.h"

namespace tutti {
namespace {

std::vector<float> resized(const Image& image, int64_t height, int64_t width, Resize method, ResizeLike like) {
  std::vector<float> out;
  int64_t next = 0;
  resize(image, height, width, method, like, [&](int64_t y, std::span<const float> row) {
    EXPECT_EQ(y, next++);
    out.insert(out.end(), row.begin(), row.end());
  });
  EXPECT_EQ(next, height);
  return out;
}

struct SizedCase {
  std::string method;
  int64_t height = 0, width = 0;
};
SizedCase parse_case(const std::string& name) {
  const size_t last = name.rfind('_'), first = name.rfind('_', last - 1);
  return {name.substr(0, first), std::stoi(name.substr(first + 1)), std::stoi(name.substr(last + 1))};
}
const std::map<std::string, Resize> methods{{"bilinear", Resize::bilinear}, {"bicubic", Resize::bicubic}, {"nearest", Resize::nearest}};

TEST(resize, is_tensorflows_to_the_last_bits) {
  const Image image = image_of(tensorflow_file("rgb.png"));
  const NpzReader cases(tensorflow_file("resized.npz"));
  EXPECT_EQ(cases.names().size(), 18);
  for (const auto& name : cases.names()) {
    const auto [method, height, width] = parse_case(name);
    const auto found = resized(image, height, width, methods.at(method), ResizeLike::tensorflow);
    const Tensor wanted = cases.open(name).all();
    ASSERT_EQ(found.size(), wanted.as<float>().size()) << name;
    float worst = 0;
    for (size_t i = 0; i < found.size(); ++i) worst = std::max(worst, std::abs(found[i] - wanted.as<float>()[i]));
    EXPECT_LE(worst, method == "nearest" ? 0 : 1e-4F) << name;
  }
}

TEST(resize, is_pillows_exactly) {
  const std::map<std::string, std::vector<std::pair<int, int>>> pictures{{"picture", {{7, 5}, {40, 50}, {23, 9}, {11, 31}}},
                                                                         {"tall", {{5, 12}, {7, 28}}}};
  for (const auto& [picture, sizes] : pictures) {
    const Image image = image_of(pillow_file(picture + ".png"));
    for (const auto& [name, method] : methods)
      for (auto [height, width] : sizes) {
        const std::string file = fmt::format("{}_{}_{}_{}.png", picture, name, height, width);
        const Image wanted = image_of(pillow_file(file));
        const auto found = resized(image, height, width, method, ResizeLike::pillow);
        EXPECT_EQ(found, std::vector<float>(wanted.pixels.begin(), wanted.pixels.end())) << file;
      }
  }
}

// The sample that `settings` make of an image, as floats.
std::vector<float> sample(const std::string& file, const Ints& row, const ImageSettings& settings, DType dtype = DType::f32) {
  const ImageSampler sampler({"x", dtype, row}, settings, "");
  Tensor out(dtype, sampler.row());
  sampler.write(file_bytes(file), out.bytes());
  Tensor floats = out.converted(DType::f32);
  return {floats.as<float>().begin(), floats.as<float>().end()};
}

TEST(image_sample, preprocessing_is_that_of_keras_applications) {
  const NpzReader cases(tensorflow_file("preprocess.npz"));
  EXPECT_EQ(cases.names().size(), 16);
  for (const auto& name : cases.names()) {
    const auto found = sample(tensorflow_file("small.png"), {6, 4, 3}, {.numbers = pixels_as(name)});
    const Tensor wanted = cases.open(name).all();
    EXPECT_EQ(found, std::vector<float>(wanted.as<float>().begin(), wanted.as<float>().end())) << name;
  }
  EXPECT_PRED2(contains, message_of<InvalidArgument>([] { pixels_as("resnet5"); }), "no preprocessing 'resnet5' (did you mean 'resnet");
}

TEST(image_sample, channels_stand_where_the_model_wants_them) {
  const Image image = image_of(tensorflow_file("small.png"));
  const auto last = sample(tensorflow_file("small.png"), {6, 4, 3}, {});
  EXPECT_EQ(last, std::vector<float>(image.pixels.begin(), image.pixels.end()));
  const auto first = sample(tensorflow_file("small.png"), {3, 6, 4}, {});
  const auto bgr = sample(tensorflow_file("small.png"), {6, 4, 3}, {.numbers = {.bgr = true}});
  const auto bytes = sample(tensorflow_file("small.png"), {6, 4, 3}, {}, DType::u8);
  EXPECT_EQ(bytes, last);
  for (size_t pixel = 0; pixel < 24; ++pixel)
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(first[c * 24 + pixel], last[pixel * 3 + c]);
      EXPECT_EQ(bgr[pixel * 3 + 2 - c], last[pixel * 3 + c]);
    }
  EXPECT_EQ(sample(tensorflow_file("small.png"), {6, 4}, {}), sample(tensorflow_file("small.png"), {6, 4, 1}, {}));
}

TEST(image_sample, scale_mean_and_deviation_are_applied_in_this_order) {
  const auto plain = sample(tensorflow_file("small.png"), {6, 4, 3}, {});
  const PixelNumbers numbers{.scale = 1 / 255.0F, .mean = {0.5F, 0.25F, 0}, .deviation = {2, 1, 0.5F}};
  const auto found = sample(tensorflow_file("small.png"), {6, 4, 3}, {.numbers = numbers});
  for (size_t i = 0; i < plain.size(); ++i)
    EXPECT_EQ(found[i], (plain[i] * numbers.scale - numbers.mean[i % 3]) / numbers.deviation[i % 3]);
}

TEST(image_sample, inputs_that_take_no_images_are_refused) {
  const auto message = [](const Ints& row, const ImageSettings& settings) {
    return message_of<InvalidArgument>([&] { ImageSampler({"x", DType::f32, row}, settings, "'a.png' is an image"); });
  };
  EXPECT_EQ(message({4}, {}), "[input] input 'x' expects float32 (samples, 4), which is no image of 1 or 3 channels; 'a.png' is an image");
  EXPECT_PRED2(contains, message({8, 8, 5}, {}), "no image of 1 or 3 channels");
  EXPECT_PRED2(contains, message({-1, -1, 3}, {}), "hint: --size");
  EXPECT_PRED2(contains, message({8, 8, 3}, {.size = {{4, 4}}}), "the size asked for is 4 x 4");
  EXPECT_PRED2(contains, message({8, 8, 1}, {.numbers = {.bgr = true}}), "got bgr");
  EXPECT_EQ(ImageSampler({"x", DType::f32, {-1, -1, 3}}, {.size = {{4, 5}}}, "").row(), Shape({4, 5, 3}));
}

}  // namespace
}  // namespace tutti
