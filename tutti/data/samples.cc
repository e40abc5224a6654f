#include "tutti/data/samples.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/data/format.h"
#include "tutti/data/npz.h"

namespace tutti {

namespace {

bool fits(const Ints& wanted, const Shape& row) {
  if (static_cast<int64_t>(wanted.size()) != row.rank()) return false;
  for (int64_t axis = 0; axis < row.rank(); ++axis)
    if (int64_t extent = wanted[static_cast<size_t>(axis)]; extent >= 0 && extent != row[axis]) return false;
  return true;
}

void copy_rows(const Tensor& rows, std::span<std::byte> slot) { std::copy(rows.bytes().begin(), rows.bytes().end(), slot.begin()); }

class ArraySamples : public SampleReader {
 public:
  ArraySamples(const std::string& path, const std::vector<InputSpec>& inputs, std::vector<NpyReader> arrays, std::vector<std::string> names)
      : arrays_(std::move(arrays)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Type& type = arrays_[i].type();
      std::string where = names.empty() ? fmt::format("'{}'", path) : fmt::format("array '{}' of '{}'", names[i], path);
      rows_.push_back({inputs[i].dtype, fit_row(inputs[i], type, where)});
      if (i == 0) samples_ = type.shape[0];
      if (type.shape[0] != samples_)
        fail<InvalidArgument>("input", "all inputs have equally many samples; '{}' has {} and '{}' has {} in '{}'", inputs[0].name,
                              samples_, inputs[i].name, type.shape[0], path);
    }
  }
  Item take(int64_t count) override {
    count = std::min(count, samples_ - done_);
    done_ += count;
    return {.name = "", .first = done_ - count, .samples = count};
  }
  void write(const Item& samples, Slots slots) const override {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (arrays_[i].type().dtype == rows_[i].dtype)
        arrays_[i].read(samples.first, samples.samples, slots[i]);
      else
        copy_rows(arrays_[i].rows(samples.first, samples.samples).converted(rows_[i].dtype), slots[i]);
    }
  }
  std::optional<int64_t> samples() const override { return samples_; }
  bool knows_rows_by_number() const override { return true; }

 private:
  std::vector<NpyReader> arrays_;
  int64_t samples_ = 0, done_ = 0;
};

class CsvSamples : public SampleReader {
 public:
  CsvSamples(const std::string& path, const InputSpec& input, CsvHeader header) : path_(path), reader_(path, header) {
    rows_.push_back({input.dtype, fit_columns(input, reader_.columns(), path)});
    count_if_small(header);
  }
  Item take(int64_t count) override {
    Tensor rows = reader_.next(count, rows_[0].dtype);
    return {.name = "", .samples = rows.shape()[0], .rows = {rows}};
  }
  void write(const Item& samples, Slots slots) const override { copy_rows(samples.rows[0], slots[0]); }
  std::optional<int64_t> samples() const override { return samples_; }
  std::string warning() const override {
    if (!reader_.first_row_counts()) return "";
    return fmt::format("[csv] '{}': its first row is 0, 1, 2, ... and was taken for a sample; hint: --header yes if it names columns",
                       escape(path_));
  }

 private:
  // So that nothing is compiled for a batch that will not be full.
  void count_if_small(CsvHeader header) {
    const auto file = open_file(path_);
    if (file->size() > 256 << 10) return;
    CsvReader again(file, path_, header);
    samples_ = 0;
    for (std::vector<std::string> fields; again.next_text(fields);) ++*samples_;
  }

  std::string path_;
  CsvReader reader_;
  std::optional<int64_t> samples_;
};

std::unique_ptr<SampleReader> open_npz(const std::string& path, const std::vector<InputSpec>& inputs) {
  NpzReader npz(path);
  const auto& names = npz.names();
  if (names.empty())
    fail<InvalidArgument>("input", "'{}' is a zip archive without arrays; hint: an .npz has .npy files in it, images are read from a .tar",
                          path);
  auto has = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  bool by_name = std::any_of(inputs.begin(), inputs.end(), [&](const InputSpec& input) { return has(input.name); });
  bool by_order = !by_name && has("arr_0");
  bool only_one = !by_name && inputs.size() == 1 && names.size() == 1;
  std::vector<std::string> chosen;
  for (size_t i = 0; i < inputs.size(); ++i) {
    chosen.push_back(by_order ? fmt::format("arr_{}", i) : only_one ? names[0] : inputs[i].name);
    if (has(chosen[i])) continue;
    std::string found;
    for (size_t k = 0; k < std::min<size_t>(names.size(), 20); ++k) found += fmt::format("{}'{}'", k ? ", " : "", escape(names[k], 60));
    fail<InvalidArgument>("input",
                          "no array '{}' in '{}'; it has {}{}; hint: arrays are named after the model's inputs, or arr_0, arr_1, ...",
                          chosen[i], path, found, did_you_mean(chosen[i], names));
  }
  std::vector<NpyReader> arrays;
  for (const auto& name : chosen) arrays.push_back(npz.open(name));
  return std::make_unique<ArraySamples>(path, inputs, std::move(arrays), chosen);
}

std::string list_of(const std::vector<InputSpec>& inputs) {
  std::string out;
  for (size_t i = 0; i < inputs.size(); ++i) out += fmt::format("{}'{}'", i ? ", " : "", inputs[i].name);
  return out;
}

}  // namespace

Shape fit_row(const InputSpec& input, const Type& array, std::string_view where) {
  if (array.shape.rank() > 0) {
    Shape row = row_of(array.shape);
    if (fits(input.row, row)) return row;
    Ints extents = row.extents();
    if (row.rank() == static_cast<int64_t>(input.row.size()) + 1 && extents.back() == 1)
      extents.pop_back();
    else if (!input.row.empty() && row.rank() + 1 == static_cast<int64_t>(input.row.size()) && input.row.back() == 1)
      extents.push_back(1);
    if (fits(input.row, extents)) return extents;
  }
  fail<InvalidArgument>("input", "input '{}' expects {}; {} is {} {}", input.name, to_string(input), where, numpy_name(array.dtype),
                        to_string(array.shape));
}

Shape fit_columns(const InputSpec& input, int64_t columns, const std::string& file) {
  // One extent may be left open; the columns say what it is.
  Ints row = input.row;
  auto open = std::find(row.begin(), row.end(), -1);
  int64_t known = 1;
  for (int64_t extent : row)
    if (extent >= 0) known = std::min(known * std::min(extent, columns + 1), columns + 1);  // saturates, never overflows
  if (std::count(row.begin(), row.end(), -1) > 1)
    fail<InvalidArgument>("input", "input '{}' expects {}, and columns cannot say more than one open extent; hint: use .npy", input.name,
                          to_string(input));
  if (open != row.end() && known > 0 && columns % known == 0) *open = columns / known, known = columns;
  if (known != columns)
    fail<InvalidArgument>("input", "input '{}' expects {}, its elements as columns; '{}' has {}", input.name, to_string(input), file,
                          columns == 1 ? "1 column; hint: commas stand between columns" : fmt::format("{} columns", columns));
  return row;
}

std::vector<Tensor> SampleReader::next(int64_t count) {
  const Item samples = take(count);
  std::vector<Tensor> out;
  std::vector<std::span<std::byte>> slots;
  for (const Type& row : rows_) slots.push_back(out.emplace_back(row.dtype, with_rows(samples.samples, row.shape)).bytes());
  write(samples, slots);
  return out;
}

std::unique_ptr<SampleReader> open_samples(const std::string& path, const std::vector<InputSpec>& inputs, CsvHeader header) {
  DataFormat format = format_of_input(path);
  if (format == DataFormat::npz) return open_npz(path, inputs);
  if (inputs.size() != 1)
    fail<InvalidArgument>("input", "the model has {} inputs ({}); '{}' holds one array; hint: an .npz has an array per input",
                          inputs.size(), list_of(inputs), path);
  if (format == DataFormat::csv) return std::make_unique<CsvSamples>(path, inputs[0], header);
  std::vector<NpyReader> arrays;
  arrays.emplace_back(path);
  return std::make_unique<ArraySamples>(path, inputs, std::move(arrays), std::vector<std::string>{});
}

std::string to_string(const InputSpec& input) {
  std::string out = fmt::format("{} (samples", numpy_name(input.dtype));
  for (int64_t extent : input.row) out += extent < 0 ? ", any" : fmt::format(", {}", extent);
  return out + ")";
}

}  // namespace tutti
