#include "tutti/cli/results.h"

#include <cmath>

#include "tutti/base/error.h"
#include "tutti/data/csv.h"
#include "tutti/data/row_json.h"

namespace tutti::cli {

namespace {

constexpr int64_t shown_samples = 10, shown_values = 8;

std::string short_number(const Tensor& tensor, int64_t index) {
  if (!is_float(tensor.dtype())) return number_text(tensor, index);
  double value = 0;
  dispatch(tensor.dtype(), [&](auto zero) { value = static_cast<double>(tensor.as<decltype(zero)>()[static_cast<size_t>(index)]); });
  return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value);  // whatever its sign
}

class TableResults : public RowWriter {
 public:
  TableResults(Console& console, std::vector<ArraySpec> arrays) : console_(console), arrays_(std::move(arrays)) {
    auto& heading = rows_.emplace_back();
    heading.emplace_back("SAMPLE");
    for (const auto& array : arrays_) heading.push_back(escape(array.name, 60) + " " + to_string(array.row));
  }
  void write(const std::vector<Tensor>& outputs) override {
    int64_t count = rows_side_by_side(arrays_, outputs);
    for (int64_t row = 0; row < count; ++row, ++samples_) {
      if (samples_ >= shown_samples) continue;
      auto& cells = rows_.emplace_back();
      cells.push_back(std::to_string(samples_));
      for (size_t i = 0; i < arrays_.size(); ++i) cells.push_back(short_row(outputs[i], row));
    }
  }
  void commit() override {
    std::vector<bool> right(arrays_.size() + 1, false);
    right[0] = true;
    console_.print(format_table(rows_, right));
    if (samples_ > shown_samples)
      console_.print(fmt::format("and {} more samples; -o OUT writes them all\n", grouped(samples_ - shown_samples)));
    if (samples_ == 0) console_.print("no samples\n");
  }

 private:
  Console& console_;
  std::vector<ArraySpec> arrays_;
  std::vector<std::vector<std::string>> rows_;
  int64_t samples_ = 0;
};

class JsonResults : public RowWriter {
 public:
  JsonResults(Console& console, std::vector<ArraySpec> arrays) : console_(console), arrays_(std::move(arrays)) {
    console_.print("{\"predictions\": [");
  }
  void write(const std::vector<Tensor>& outputs) override {
    int64_t count = rows_side_by_side(arrays_, outputs);
    for (int64_t row = 0; row < count; ++row) {
      Json sample = Json::object();
      for (size_t i = 0; i < arrays_.size(); ++i) sample.set(arrays_[i].name, row_json(outputs[i], row));
      console_.print((first_ ? "\n" : ",\n") + sample.dump());
      first_ = false;
    }
  }
  void commit() override { console_.print("]"); }

 private:
  Console& console_;
  std::vector<ArraySpec> arrays_;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<RowWriter> table_results(Console& console, std::vector<ArraySpec> arrays) {
  return std::make_unique<TableResults>(console, std::move(arrays));
}

std::unique_ptr<RowWriter> json_results(Console& console, std::vector<ArraySpec> arrays) {
  return std::make_unique<JsonResults>(console, std::move(arrays));
}

std::string short_row(const Tensor& rows, int64_t row) {
  const int64_t count = rows.shape()[0], elements = count == 0 ? 0 : rows.elements() / count;
  std::string out;
  for (int64_t i = 0; i < std::min(elements, shown_values); ++i)
    out += fmt::format("{}{:>12}", i ? " " : "", short_number(rows, row * elements + i));
  return elements > shown_values ? out + " ..." : out;
}

Json shape_json(const Shape& shape) {
  Json out = Json::list();
  for (int64_t extent : shape) out.push(extent);
  return out;
}

}  // namespace tutti::cli
