// What the data of a job are read from: arrays, columns of a .csv, a folder of images by class, windows of a series.
#pragma once

#include <functional>
#include <optional>

#include "tutti/data/samples.h"
#include "tutti/run/fit_data.h"

namespace tutti {

enum class SourceKind { arrays, npy, npz, csv, images, series };
SourceKind kind_of(const DataSource& source);

// Reads one part of a job's data. `y` without a file of its own is of the file of `x`. Outputs that are not `measured`, by a loss or a
// metric, need no arrays: theirs are zeros then, which nothing reads.
class FitSource {
 public:
  FitSource(FitDataStore& store, const keras::Model& model, const FitJob& job, const DataSource& x, const DataSource& y,
            const std::vector<bool>& measured);

  // Known classes, or none yet; targets() finds them.
  std::vector<std::string> classes;
  std::vector<FitArray> inputs();
  std::vector<FitArray> targets();
  // Arrays of any shape, one an output of the model. `what` they are, for messages.
  std::vector<FitArray> by_output(const DataSource& source, std::string_view what, bool one_for_all = false);

 private:
  std::vector<FitArray> csv_inputs();
  std::vector<FitArray> csv_targets(const DataSource& source);
  std::vector<FitArray> npz_inputs();
  FitArray npy(NpyReader array, DType dtype, const Shape& row);
  FitArray collected(RowCollector& rows);
  FitArray csv_array(const std::string& file, const std::vector<size_t>& places, DType dtype, std::string_view hint);
  FitArray images();
  std::vector<int64_t> order_of_images(int64_t count) const;
  FitArray windows(bool targets);
  // Of classes by number, in the form that the loss takes; `numbers` gives out one after another.
  FitArray labels(const std::function<void(const std::function<void(int32_t)>&)>& numbers);
  // Which outputs the one array of a file is for: the only one, or the only one that is measured.
  size_t only_output(const std::string& file) const;
  std::vector<FitArray> with_zeros(const std::vector<std::optional<FitArray>>& arrays, const std::string& file) const;
  const InputSpec& only_input(std::string_view what) const;

  FitDataStore& store_;
  const keras::Model& model_;
  const FitJob& job_;
  const DataSource& x_;
  DataSource y_;
  SourceKind kind_;  // of x
  const std::vector<bool>& measured_;
  std::vector<InputSpec> specs_;
};

}  // namespace tutti
