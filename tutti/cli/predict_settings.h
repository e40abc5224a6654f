// What `tutti predict` was asked for, and what its ways to predict share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/data/image_options.h"
#include "tutti/keras/any_model.h"
#include "tutti/run/predictor.h"

namespace tutti::cli {

class Options;

// Options of images, and of what is predicted in bulk.
struct ItemSettings : ImageOptions {
  std::string files, on_error = "skip", labels;
  int64_t workers = 0, queue = 0, max_wait = 1000, top = 0;
  bool resume = false;
  // One that is set and that arrays have no use for; or "".
  std::string set_option() const;
};

struct PredictSettings {
  std::string model, input, output, device{default_device}, header = "auto", plan = "auto", precision = "float32";
  int64_t batch = 0, repeat = 0, threads = 0;
  bool latency = false;
  ItemSettings items;
};

void add_item_options(Options& options, ItemSettings& settings);
// Throws UsageError for numbers and names that are none.
ImageSettings image_settings(const ItemSettings& settings, int64_t channels);

std::vector<InputSpec> input_specs(const keras::AnyModel& model);
// INPUT as arrays or as columns of a .csv.
std::unique_ptr<SampleReader> open_table_samples(const PredictSettings& settings, const keras::AnyModel& model);
CompileOptions compile_options(const PredictSettings& settings, int64_t batch);
// What an output is called and what its rows are. As in Keras, rows of all batches follow each other, one for each sample or not.
std::vector<ArraySpec> output_specs(const keras::AnyModel& model, const std::vector<Tensor>& outputs);

}  // namespace tutti::cli
