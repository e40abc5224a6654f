// What one job of training is told, and job files: TOML with [defaults], a [[job]] each, and [[sweep]]s that stand for many.
#pragma once

#include <string>
#include <vector>

#include "tutti/base/json.h"
#include "tutti/base/tensor.h"

namespace tutti {

// Where samples come from: a path, or a table of a path and how it is read (docs/fit.md).
struct DataSource {
  std::string file;               // or a folder of images
  Json options = Json::object();  // as written, but for the path
  std::vector<Tensor> arrays;     // instead of a file: by input or output of the model, [samples, ...]
  DataSource() = default;
  DataSource(std::string path) : file(std::move(path)) {}  // NOLINT(google-explicit-constructor): a path is one
  DataSource(const char* path) : file(path) {}             // NOLINT(google-explicit-constructor)
  DataSource(Tensor array) : arrays{std::move(array)} {}   // NOLINT(google-explicit-constructor)
  bool empty() const { return file.empty() && arrays.empty() && options.size() == 0; }
  Json facts() const;  // to tell them apart
};

struct FitJob {
  std::string name;                // of the folder of its results too
  std::string model, build;        // a file, or layers in words
  Ints input;                      // of a built model: extents of one sample
  Json architecture;               // or a model with fresh weights: that of keras::Sequential
  DataSource x, y, sample_weight;  // y: empty for images by class and for series, which have their own
  DataSource validation_x, validation_y, validation_sample_weight;
  double validation_split = 0;
  Json loss, loss_weights, optimizer, schedule, metrics, weighted_metrics;  // as written; null: the file's own, or none
  Json class_weight;                                                        // weights by class: a table, or a list; null: none
  Json early_stopping, reduce_on_plateau;
  int64_t epochs = 1, batch_size = 32, steps_per_epoch = 0 /* 0: a pass over the data */, gradient_accumulation_steps = 1;
  bool shuffle = true;
  int64_t seed = 0;
  // Not of the file: the learning rate times this, reached after so many steps; -1: a tenth of all, at most five epochs.
  double rate_factor = 1;
  int64_t warmup_steps = 0;

  Json facts() const;  // all of it, to tell jobs apart
};

// Paths in it are relative to the file. Throws InvalidArgument for unknown keys, with the nearest, and for values that cannot be.
std::vector<FitJob> read_jobs(const std::string& path);
// Whether a file is one of jobs: TOML with a job or a sweep in it.
bool is_job_file(const std::string& path);

}  // namespace tutti
