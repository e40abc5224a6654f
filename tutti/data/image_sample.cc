#include "tutti/data/image_sample.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti {

namespace {

constexpr PixelNumbers caffe{.bgr = true, .mean = {103.939F, 116.779F, 123.68F}};
constexpr PixelNumbers tf{.divisor = 127.5F, .mean = {1, 1, 1}};
constexpr PixelNumbers torch{.divisor = 255, .mean = {0.485F, 0.456F, 0.406F}, .deviation = {0.229F, 0.224F, 0.225F}};
constexpr PixelNumbers as_they_are{};

struct Preprocess {
  std::string_view name;
  const PixelNumbers* numbers;
};
constexpr Preprocess all_preprocess[] = {
    {"caffe", &caffe},
    {"convnext", &as_they_are},
    {"densenet", &torch},
    {"efficientnet", &as_they_are},
    {"efficientnet_v2", &as_they_are},
    {"inception_resnet_v2", &tf},
    {"inception_v3", &tf},
    {"mobilenet", &tf},
    {"mobilenet_v2", &tf},
    {"mobilenet_v3", &as_they_are},
    {"nasnet", &tf},
    {"none", &as_they_are},
    {"resnet", &caffe},
    {"resnet50", &caffe},
    {"resnet_v2", &tf},
    {"tf", &tf},
    {"torch", &torch},
    {"vgg16", &caffe},
    {"vgg19", &caffe},
    {"xception", &tf},
};

bool holds_channels(int64_t extent) { return extent == 1 || extent == 3; }

}  // namespace

std::vector<std::string> preprocess_names() {
  std::vector<std::string> out;
  for (const Preprocess& one : all_preprocess) out.emplace_back(one.name);
  return out;
}

PixelNumbers pixels_as(std::string_view preprocess) {
  for (const Preprocess& one : all_preprocess)
    if (one.name == preprocess) return *one.numbers;
  fail<InvalidArgument>("image", "no preprocessing '{}'{}; there are {}", escape(preprocess), did_you_mean(preprocess, preprocess_names()),
                        fmt::join(preprocess_names(), ", "));
}

ImageSampler::ImageSampler(const InputSpec& input, const ImageSettings& settings, std::string_view what)
    : settings_(settings), dtype_(input.dtype) {
  Ints row = input.row;
  const bool flat = row.size() == 2;  // one channel without an axis
  channels_first_ = row.size() == 3 && !holds_channels(row[2]) && holds_channels(row[0]);
  if (!flat && (row.size() != 3 || !holds_channels(channels_first_ ? row[0] : row[2])))
    fail<InvalidArgument>("input", "input '{}' expects {}, which is no image of 1 or 3 channels; {}", input.name, to_string(input), what);
  channels_ = flat ? 1 : channels_first_ ? row[0] : row[2];
  int64_t& height = row[channels_first_ ? 1 : 0];
  int64_t& width = row[channels_first_ ? 2 : 1];
  if (settings.size) {
    const auto [own_height, own_width] = *settings.size;
    if ((height >= 0 && height != own_height) || (width >= 0 && width != own_width))
      fail<InvalidArgument>("input", "input '{}' expects {}; the size asked for is {} x {}", input.name, to_string(input), own_height,
                            own_width);
    height = own_height, width = own_width;
  }
  if (height < 1 || width < 1)
    fail<InvalidArgument>(
        "input", "input '{}' expects {}: images of any size, and a batch has one; hint: --size HEIGHTxWIDTH, or size in a job file",
        input.name, to_string(input));
  if (channels_ == 1 && settings.numbers.bgr)
    fail<InvalidArgument>("input", "input '{}' expects {}, one channel, which has no order; got bgr", input.name, to_string(input));
  height_ = height, width_ = width, row_ = row;
  constexpr PixelNumbers none;
  const PixelNumbers& numbers = settings_.numbers;
  plain_ =
      numbers.divisor == none.divisor && numbers.scale == none.scale && numbers.mean == none.mean && numbers.deviation == none.deviation;
  for (int64_t i = 0; i < width_ * channels_; ++i) {
    mean_.push_back(numbers.mean[static_cast<size_t>(i % channels_)]);
    deviation_.push_back(numbers.deviation[static_cast<size_t>(i % channels_)]);
  }
}

template <class T>
void ImageSampler::put_row(int64_t y, std::span<const float> row, T* sample) const {
  const auto width = static_cast<size_t>(width_), channels = static_cast<size_t>(channels_), area = static_cast<size_t>(height_) * width;
  for (size_t x = 0; x < width; ++x)
    for (size_t c = 0; c < channels; ++c) {
      const size_t at =
          channels_first_ ? c * area + static_cast<size_t>(y) * width + x : (static_cast<size_t>(y) * width + x) * channels + c;
      sample[at] = convert_element<T>(row[x * channels + c]);
    }
}

void ImageSampler::write(std::span<const std::byte> file, std::span<std::byte> slot) const {
  ImageWish wish{.channels = channels_, .like = settings_.decoded_like};
  if (settings_.fast_decode) wish.least_height = height_, wish.least_width = width_;
  const Image image = decode_image(file, wish);
  std::vector<float> own(mean_.size());
  resize(image, height_, width_, settings_.method, settings_.like, [&](int64_t y, std::span<const float> row) {
    const bool direct = dtype_ == DType::f32 && !channels_first_;
    const std::span<float> numbers = direct ? std::span(reinterpret_cast<float*>(slot.data()) + y * width_ * channels_, own.size()) : own;
    if (settings_.numbers.bgr)
      for (size_t i = 0; i < row.size(); i += 3) numbers[i] = row[i + 2], numbers[i + 1] = row[i + 1], numbers[i + 2] = row[i];
    else
      std::copy(row.begin(), row.end(), numbers.begin());
    if (!plain_)
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = (numbers[i] / settings_.numbers.divisor * settings_.numbers.scale - mean_[i]) / deviation_[i];
    if (!direct) dispatch(dtype_, [&](auto zero) { put_row(y, numbers, reinterpret_cast<decltype(zero)*>(slot.data())); });
  });
}

}  // namespace tutti
