#include "tutti/cli/results.h"

#include "tutti/base/error.h"
#include "tutti/data/csv.h"

namespace tutti::cli {

namespace {

constexpr int64_t shown_samples = 10, shown_values = 8;

std::string short_number(const Tensor& tensor, int64_t index) {
  if (!is_float(tensor.dtype())) return number_text(tensor, index);
  double value = 0;
  dispatch(tensor.dtype(), [&](auto zero) { value = static_cast<double>(tensor.as<decltype(zero)>()[static_cast<size_t>(index)]); });
  return fmt::format("{:.6g}", value);
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
      for (size_t i = 0; i < arrays_.size(); ++i) cells.push_back(cell(outputs[i], row, arrays_[i].row.elements()));
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
  static std::string cell(const Tensor& output, int64_t row, int64_t elements) {
    std::string out;
    for (int64_t i = 0; i < std::min(elements, shown_values); ++i)
      out += fmt::format("{}{:>12}", i ? " " : "", short_number(output, row * elements + i));
    return elements > shown_values ? out + " ..." : out;
  }
  Console& console_;
  std::vector<ArraySpec> arrays_;
  std::vector<std::vector<std::string>> rows_;
  int64_t samples_ = 0;
};

// Row-major elements from `begin` on as nested lists.
Json nested(const Tensor& tensor, const Shape& shape, int64_t axis, int64_t& at) {
  if (axis == shape.rank()) {
    int64_t index = at++;
    Json out;
    dispatch(tensor.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T value = tensor.as<T>()[static_cast<size_t>(index)];
      if constexpr (is_float(dtype_of<T>()))
        out = Json(static_cast<double>(value));
      else if constexpr (std::is_same_v<T, bool>)
        out = Json(value);
      else
        out = Json(static_cast<int64_t>(value));
    });
    return out;
  }
  Json out = Json::list();
  for (int64_t i = 0; i < shape[axis]; ++i) out.push(nested(tensor, shape, axis + 1, at));
  return out;
}

class JsonResults : public RowWriter {
 public:
  JsonResults(Console& console, std::vector<ArraySpec> arrays) : console_(console), arrays_(std::move(arrays)) {
    console_.print("{\"predictions\": [");
  }
  void write(const std::vector<Tensor>& outputs) override {
    int64_t count = rows_side_by_side(arrays_, outputs);
    for (int64_t row = 0; row < count; ++row) {
      Json sample = Json::object();
      for (size_t i = 0; i < arrays_.size(); ++i) {
        int64_t at = row * arrays_[i].row.elements();
        sample.set(arrays_[i].name, nested(outputs[i], arrays_[i].row, 0, at));
      }
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

Json shape_json(const Shape& shape) {
  Json out = Json::list();
  for (int64_t extent : shape) out.push(extent);
  return out;
}

}  // namespace tutti::cli
