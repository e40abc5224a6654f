#include "tutti/data/image_options.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti {

namespace {

// "0.5" or "1/255".
double parse_fraction(const std::string& option, std::string_view text) {
  const size_t slash = text.find('/');
  const auto above = parse_double(text.substr(0, slash));
  const auto below = slash == text.npos ? std::optional(1.0) : parse_double(text.substr(slash + 1));
  if (!above || !below || *below == 0 || !std::isfinite(static_cast<float>(*above / *below)))
    fail<InvalidArgument>("input", "{} takes a number or a fraction like 1/255; got '{}'", option, escape(text));
  return *above / *below;
}

// One number for all channels, or one each.
std::array<float, 3> parse_channels(const std::string& option, const std::string& text, int64_t channels) {
  std::vector<float> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    numbers.push_back(static_cast<float>(parse_fraction(option, std::string_view(text).substr(begin, end - begin))));
    begin = end + 1;
  }
  if (numbers.size() != 1 && numbers.size() != static_cast<size_t>(channels))
    fail<InvalidArgument>("input", "{} takes one number, or one for each of the {} channels; got {}", option, channels, numbers.size());
  std::array<float, 3> out{};
  for (size_t i = 0; i < out.size(); ++i) out[i] = numbers[std::min(i, numbers.size() - 1)];
  return out;
}

std::array<int64_t, 2> parse_size(const std::string& option, const std::string& text) {
  const size_t cross = text.find('x');
  const auto height = parse_double(std::string_view(text).substr(0, cross));
  const auto width = cross == text.npos ? height : parse_double(std::string_view(text).substr(cross + 1));
  const auto good = [](std::optional<double> extent) {
    return extent && *extent >= 1 && *extent <= 1 << 14 && *extent == static_cast<double>(static_cast<int64_t>(*extent));
  };
  if (!good(height) || !good(width))
    fail<InvalidArgument>("input", "{} takes HEIGHTxWIDTH, 1 to 16384 each; got '{}'", option, escape(text));
  return {static_cast<int64_t>(*height), static_cast<int64_t>(*width)};
}

}  // namespace

ImageSettings image_settings(const ImageOptions& options, int64_t channels, const std::string& prefix) {
  ImageSettings out;
  out.method = options.resize == "nearest" ? Resize::nearest : options.resize == "bicubic" ? Resize::bicubic : Resize::bilinear;
  out.like = options.resize_like == "pil" ? ResizeLike::pillow : ResizeLike::tensorflow;
  out.decoded_like = options.decode_like == "tf" ? DecodeLike::tensorflow : DecodeLike::pillow;
  if (!options.size.empty()) out.size = parse_size(prefix + "size", options.size);
  out.fast_decode = options.fast_decode;
  const bool own = !options.scale.empty() || !options.mean.empty() || !options.deviation.empty() || !options.channels.empty();
  if (!options.preprocess.empty()) {
    if (own)
      fail<InvalidArgument>("input", "{0}preprocess already says {0}scale, {0}mean, {0}std and {0}channels; give one or the other", prefix);
    out.numbers = pixels_as(options.preprocess);
    return out;
  }
  if (options.channels == "gray" && channels != 1)
    fail<InvalidArgument>("input", "{}channels gray is one channel; the model's input has {}", prefix, channels);
  out.numbers.bgr = options.channels == "bgr";
  if (!options.scale.empty()) out.numbers.scale = static_cast<float>(parse_fraction(prefix + "scale", options.scale));
  if (!options.mean.empty()) out.numbers.mean = parse_channels(prefix + "mean", options.mean, channels);
  if (!options.deviation.empty()) out.numbers.deviation = parse_channels(prefix + "std", options.deviation, channels);
  for (float deviation : out.numbers.deviation)
    if (deviation == 0) fail<InvalidArgument>("input", "{}std divides, and a zero cannot; got 0", prefix);
  return out;
}

ImageSampler image_sampler(const InputSpec& input, const ImageOptions& options, const std::string& what, const std::string& prefix) {
  ImageOptions plain;
  plain.size = options.size;
  const int64_t channels = ImageSampler(input, image_settings(plain, 1, prefix), what).channels();
  return {input, image_settings(options, channels, prefix), what};
}

}  // namespace tutti
