#include "tutti/cli/predict_settings.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/cli/verb.h"

namespace tutti::cli {

std::string ItemSettings::set_option() const {
  const ItemSettings none;
  if (resize != none.resize) return "--resize";
  if (resize_like != none.resize_like) return "--resize-like";
  if (decode_like != none.decode_like) return "--decode-like";
  if (!scale.empty()) return "--scale";
  if (!mean.empty()) return "--mean";
  if (!deviation.empty()) return "--std";
  if (!channels.empty()) return "--channels";
  if (!preprocess.empty()) return "--preprocess";
  if (fast_decode) return "--fast-decode";
  return size.empty() ? "" : "--size";
}

void add_item_options(Options& options, ItemSettings& settings) {
  options.option(settings.files, "--files", "LIST", "Images by their paths, one a line, instead of INPUT; - reads them from stdin");
  options.choice(settings.resize, "--resize", {"bilinear", "nearest", "bicubic"},
                 "How images get the size of the model's input; default bilinear");
  options.choice(settings.resize_like, "--resize-like", {"tf", "pil"},
                 "As tf.image.resize and Keras's Resizing do (default), or as Pillow, antialiased");
  options.choice(settings.decode_like, "--decode-like", {"pil", "tf"},
                 "Pixels of a JPEG, and gray, as Pillow has them (default), or tf.io.decode_image and image_dataset_from_directory");
  options.option(settings.size, "--size", "HxW", "The size of images, where the model takes any");
  options.choice(settings.channels, "--channels", {"rgb", "bgr", "gray"}, "The order of colours; default rgb, or gray for one channel");
  options.option(settings.scale, "--scale", "S", "Pixels are multiplied by this first: 1/255");
  options.option(settings.mean, "--mean", "M,M,M", "Subtracted then; one number, or one a channel");
  options.option(settings.deviation, "--std", "S,S,S", "Divided by last; one number, or one a channel");
  options.option(settings.preprocess, "--preprocess", "NAME",
                 "What keras.applications.NAME.preprocess_input does: resnet50, mobilenet_v2, ...");
  options.flag(settings.fast_decode, "--fast-decode",
               "Large JPEGs at 1/2, 1/4 or 1/8 of their size, then resized: faster, and not quite the pixels that Keras sees");
  options.option(settings.workers, "--workers", "Threads that read and decode; default the cores, of a table one", 1, 1024);
  options.option(settings.queue, "--queue", "Samples on their way to the device, at most; default two batches, of a table some more", 1,
                 1 << 24);
  options.option(settings.max_wait, "--max-wait",
                 "Milliseconds after which a batch that waits for paths is computed as it is; default 1000", 0, 1 << 30);
  options.choice(settings.on_error, "--on-error", {"skip", "stop"}, "What an image that cannot be read does to the run; default skip");
  options.flag(settings.resume, "--resume", "Go on with a run that was interrupted");
  options.option(settings.labels, "--labels", "FILE",
                 "Names of the classes, one a line: the most likely ones are written instead of all values");
  options.option(settings.top, "--top", "How many of them; default 5. Without --labels by their numbers", 1, 1 << 20);
}

ImageSettings image_settings(const ItemSettings& settings, int64_t channels) {
  ImageSettings out;
  as_usage([&] { out = tutti::image_settings(settings, channels, "--"); });
  return out;
}

std::vector<InputSpec> input_specs(const keras::AnyModel& model) {
  std::vector<InputSpec> out;
  for (const auto& input : model.inputs()) out.push_back({input.name, input.dtype, Ints(input.shape.begin() + 1, input.shape.end())});
  return out;
}

std::unique_ptr<SampleReader> open_table_samples(const PredictSettings& settings, const keras::AnyModel& model) {
  const CsvHeader header = settings.header == "yes" ? CsvHeader::present : settings.header == "no" ? CsvHeader::absent : CsvHeader::detect;
  return open_samples(settings.input, input_specs(model), header);
}

CompileOptions compile_options(const PredictSettings& settings, int64_t batch) {
  return {.batch = batch,
          .device = settings.device,
          .threads = static_cast<int>(settings.threads),
          .arrangement = arrangement_of(settings.plan),
          .precision = precision_of(settings.precision)};
}

std::vector<ArraySpec> output_specs(const keras::AnyModel& model, const std::vector<Tensor>& outputs) {
  std::vector<ArraySpec> out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.output_names()[i];
    if (outputs[i].shape().rank() == 0) fail<Unsupported>("predict", "output '{}' is a single number for all samples, not rows", name);
    out.push_back({name, outputs[i].dtype(), row_of(outputs[i].shape())});
  }
  return out;
}

}  // namespace tutti::cli
