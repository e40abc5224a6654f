// Samples for a model, from a data file, some at a time: each of the model's inputs in its own dtype and shape.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/data/csv.h"
#include "tutti/data/items.h"

namespace tutti {

// What a model takes as one of its inputs.
struct InputSpec {
  std::string name;
  DType dtype = DType::f32;
  Ints row;  // extents of one sample; -1: any, the same for all samples
};

class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // The next samples, at most `count`; fewer at the end, then none.
  virtual Item take(int64_t count) = 0;
  // Writes them where they belong. Safe from many threads.
  virtual void write(const Item& samples, Slots slots) const = 0;
  // Whether write() takes any rows of an item, by `first` and `samples`, without take().
  virtual bool knows_rows_by_number() const { return false; }
  // Both at once: a tensor an input, [samples, row...].
  std::vector<Tensor> next(int64_t count);
  // How many there are in all, where the file says so before it is read.
  virtual std::optional<int64_t> samples() const = 0;
  // Something odd about the file that may be right, or "".
  virtual std::string warning() const { return ""; }
  // One sample of each input; its extents are all known now.
  const std::vector<Type>& rows() const { return rows_; }

 protected:
  std::vector<Type> rows_;
};

// .npy: the one input. .npz: an array per input name, or arr_0, arr_1, ... in their order; other arrays are left alone. .csv: the one
// input, its elements row-major in the columns. Dtypes are converted as Keras does, and as there a last axis of extent 1 may be missing or
// too much. Throws InvalidArgument naming the input, what was expected and what was found.
std::unique_ptr<SampleReader> open_samples(const std::string& path, const std::vector<InputSpec>& inputs,
                                           CsvHeader header = CsvHeader::detect);

// The extents of a sample as the model will see it: of an array of this type, or of so many columns. `where` names the array and its file,
// in messages.
Shape fit_row(const InputSpec& input, const Type& array, std::string_view where);
Shape fit_columns(const InputSpec& input, int64_t columns, const std::string& file);

std::string to_string(const InputSpec& input);  // float32 (samples, 28, 28, any)

}  // namespace tutti
