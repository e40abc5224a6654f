#include "tutti/data/row_writer.h"

#include "tutti/base/error.h"
#include "tutti/data/csv.h"
#include "tutti/data/format.h"
#include "tutti/data/npz.h"
#include "tutti/data/row_json.h"

namespace tutti {

namespace {

Tensor for_numpy(const Tensor& rows) { return rows.dtype() == DType::bf16 ? rows.converted(DType::f32) : rows; }

class NpyOutput : public RowWriter {
 public:
  NpyOutput(const std::string& path, ArraySpec array) : writer_(path, std::move(array)) {}
  void write(const std::vector<Tensor>& rows) override { writer_.write(for_numpy(rows.at(0))); }
  void commit() override { writer_.commit(); }

 private:
  NpyWriter writer_;
};

class NpzOutput : public RowWriter {
 public:
  NpzOutput(const std::string& path, std::vector<ArraySpec> arrays) : writer_(path, std::move(arrays)) {}
  void write(const std::vector<Tensor>& rows) override {
    for (size_t i = 0; i < rows.size(); ++i) writer_.write(i, for_numpy(rows[i]));
  }
  void commit() override { writer_.commit(); }

 private:
  NpzWriter writer_;
};

class CsvOutput : public RowWriter {
 public:
  CsvOutput(const std::string& path, std::vector<ArraySpec> arrays) : writer_(path, std::move(arrays)) {}
  void write(const std::vector<Tensor>& rows) override { writer_.write(rows); }
  void commit() override { writer_.commit(); }

 private:
  CsvWriter writer_;
};

class JsonLinesOutput : public RowWriter {
 public:
  JsonLinesOutput(const std::string& path, std::vector<ArraySpec> arrays) : file_(path), arrays_(std::move(arrays)) {}
  void write(const std::vector<Tensor>& rows) override {
    const int64_t count = rows_side_by_side(arrays_, rows);
    for (int64_t row = 0; row < count; ++row) {
      Json line = Json::object();
      for (size_t i = 0; i < arrays_.size(); ++i) line.set(arrays_[i].name, row_json(rows[i], row));
      file_.write(line.dump() + "\n");
    }
  }
  void commit() override { file_.commit(false); }

 private:
  OutputFile file_;
  std::vector<ArraySpec> arrays_;
};

}  // namespace

std::unique_ptr<RowWriter> open_output(const std::string& path, std::vector<ArraySpec> arrays) {
  DataFormat format = format_of_output(path);
  if (format == DataFormat::csv) return std::make_unique<CsvOutput>(path, std::move(arrays));
  if (format == DataFormat::json_lines) return std::make_unique<JsonLinesOutput>(path, std::move(arrays));
  for (auto& array : arrays)
    if (array.dtype == DType::bf16) array.dtype = DType::f32;
  if (format == DataFormat::npz) return std::make_unique<NpzOutput>(path, std::move(arrays));
  if (arrays.size() != 1)
    fail<InvalidArgument>("output", "the model has {} outputs and '{}' holds one array; hint: an .npz has an array per output",
                          arrays.size(), path);
  return std::make_unique<NpyOutput>(path, std::move(arrays[0]));
}

}  // namespace tutti
