// An image becomes one sample of a model's input: resized, its channels ordered, its pixels turned into the numbers the model was trained
// with, written straight into its place in a batch.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/resize.h"
#include "tutti/data/samples.h"

namespace tutti {

// A pixel becomes (pixel / divisor * scale - mean) / deviation, in float32 and in this order; mean and deviation are those of its channel,
// channels in the order the model sees them.
struct PixelNumbers {
  bool bgr = false;  // blue first
  float divisor = 1, scale = 1;
  std::array<float, 3> mean{0, 0, 0}, deviation{1, 1, 1};
};

// What keras.applications.NAME.preprocess_input computes ("resnet50", "mobilenet_v2", ...), or imagenet_utils' mode ("caffe", "tf",
// "torch", "none"), to the last bit. Throws InvalidArgument for other names.
PixelNumbers pixels_as(std::string_view preprocess);
std::vector<std::string> preprocess_names();

struct ImageSettings {
  Resize method = Resize::bilinear;
  ResizeLike like = ResizeLike::tensorflow;
  DecodeLike decoded_like = DecodeLike::pillow;
  std::optional<std::array<int64_t, 2>> size = {};  // height and width, where the model leaves them open
  PixelNumbers numbers = {};
  bool fast_decode = false;  // large JPEGs at a fraction of their size: faster, and not the pixels that Keras sees
};

// Writes samples; const, so that many threads may share one.
class ImageSampler {
 public:
  // Throws InvalidArgument when the input takes no images. `what` names what was given, in the message.
  ImageSampler(const InputSpec& input, const ImageSettings& settings, std::string_view what);
  // Of one sample: [height, width, channels], [channels, height, width] or [height, width].
  const Shape& row() const { return row_; }
  int64_t channels() const { return channels_; }
  // Decodes the bytes of a file into `slot`, the bytes of one row.
  void write(std::span<const std::byte> file, std::span<std::byte> slot) const;

 private:
  template <class T>
  void put_row(int64_t y, std::span<const float> row, T* sample) const;
  ImageSettings settings_;
  DType dtype_;
  Shape row_;
  int64_t height_ = 0, width_ = 0, channels_ = 0;
  bool channels_first_ = false, plain_ = true;
  std::vector<float> mean_, deviation_;  // along a row of the image
};

}  // namespace tutti
