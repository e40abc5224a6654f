// How images become numbers, as a user says it in words: on the command line, or in a job file.
#pragma once

#include <string>

#include "tutti/data/image_sample.h"

namespace tutti {

struct ImageOptions {
  std::string resize = "bilinear", resize_like = "tf";  // bilinear, nearest or bicubic; as TensorFlow or "pil"
  std::string decode_like = "pil";                      // or "tf"
  std::string size;                                     // "224x224", where the model takes any
  std::string channels;                                 // rgb, bgr or gray; empty: rgb, or gray for one channel
  std::string scale, mean, deviation;                   // "1/255"; a number, or one a channel with commas between
  std::string preprocess;                               // a name of keras.applications, instead of these
  bool fast_decode = false;
};

// `prefix` stands before the names of options in messages: "--" on the command line. Throws InvalidArgument for numbers and names that are
// none.
ImageSettings image_settings(const ImageOptions& options, int64_t channels, const std::string& prefix);

// The sampler of a model's input; `what` names what was given, in the message.
ImageSampler image_sampler(const InputSpec& input, const ImageOptions& options, const std::string& what, const std::string& prefix);

}  // namespace tutti
