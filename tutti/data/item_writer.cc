#include "tutti/data/item_writer.h"

#include <algorithm>
#include <limits>

#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/data/csv.h"
#include "tutti/data/format.h"
#include "tutti/data/row_json.h"

namespace tutti {

namespace {

class RowItems : public ItemWriter {
 public:
  explicit RowItems(std::unique_ptr<RowWriter> rows) : rows_(std::move(rows)) {}
  void write(const ItemRows& rows) override { rows_->write(rows.outputs); }
  void commit() override { rows_->commit(); }

 private:
  std::unique_ptr<RowWriter> rows_;
};

class CsvItems : public ItemWriter {
 public:
  CsvItems(const std::string& path, std::vector<ArraySpec> arrays, std::shared_ptr<const TopLabels> labels, bool named)
      : file_(path), arrays_(std::move(arrays)), labels_(std::move(labels)), named_(named) {
    std::vector<std::string> names;
    if (labels_)
      for (int64_t i = 1; i <= std::min(labels_->count(), arrays_[0].row[0]); ++i)
        names.insert(names.end(), {fmt::format("label_{}", i), fmt::format("score_{}", i)});
    else
      names = csv_columns(arrays_);
    columns_ = static_cast<int64_t>(names.size());
    std::string line = named_ ? "path" : "";
    for (const auto& name : names) line += fmt::format("{}{}", line.empty() ? "" : ",", csv_field(name));
    file_.write(line + "\n");
  }
  void write(const ItemRows& rows) override {
    for (size_t i = 0; i < static_cast<size_t>(rows.outputs.at(0).shape()[0]); ++i) {
      std::string line;
      const auto add = [&](std::string_view field) {
        line += field;
        line += ',';
      };
      if (named_) add(csv_field(rows.names[i]));
      if (!rows.errors.empty() && !rows.errors[i].empty()) {
        add(csv_field("error: " + rows.errors[i]));
        for (int64_t column = 1; column < columns_; ++column) add("");
      } else if (labels_) {
        for (const auto& [label, score] : labels_->of(rows.outputs[0], static_cast<int64_t>(i))) {
          add(csv_field(label));
          add(number_text(Tensor::scalar(static_cast<float>(score)), 0));
        }
      } else {
        for (size_t k = 0; k < arrays_.size(); ++k)
          for (int64_t at = 0, elements = arrays_[k].row.elements(); at < elements; ++at)
            add(number_text(rows.outputs[k], static_cast<int64_t>(i) * elements + at));
      }
      line.back() = '\n';
      file_.write(line);
    }
  }
  void commit() override { file_.commit(false); }

 private:
  OutputFile file_;
  std::vector<ArraySpec> arrays_;
  std::shared_ptr<const TopLabels> labels_;
  bool named_;
  int64_t columns_ = 0;  // behind the path
};

class JsonLineItems : public ItemWriter {
 public:
  JsonLineItems(const std::string& path, std::vector<ArraySpec> arrays, std::shared_ptr<const TopLabels> labels)
      : file_(path), arrays_(std::move(arrays)), labels_(std::move(labels)) {}
  void write(const ItemRows& rows) override {
    for (size_t i = 0; i < static_cast<size_t>(rows.outputs.at(0).shape()[0]); ++i)
      file_.write(item_json(arrays_, labels_.get(), rows, i).dump() + "\n");
  }
  void commit() override { file_.commit(false); }

 private:
  OutputFile file_;
  std::vector<ArraySpec> arrays_;
  std::shared_ptr<const TopLabels> labels_;
};

}  // namespace

Json item_json(const std::vector<ArraySpec>& arrays, const TopLabels* labels, const ItemRows& rows, size_t i) {
  Json out = Json::object();
  if (!rows.names.empty()) out.set("path", rows.names[i]);
  if (!rows.errors.empty() && !rows.errors[i].empty()) {
    out.set("error", rows.errors[i]);
  } else if (labels != nullptr) {
    Json top = Json::list();
    for (const auto& [label, score] : labels->of(rows.outputs[0], static_cast<int64_t>(i)))
      top.push(JsonMembers{{"label", label}, {"score", score}});
    out.set("top", top);
  } else {
    for (size_t k = 0; k < arrays.size(); ++k) out.set(arrays[k].name, row_json(rows.outputs[k], static_cast<int64_t>(i)));
  }
  return out;
}

std::vector<Tensor> with_marks(const std::vector<Tensor>& outputs, const std::vector<std::string>& errors) {
  if (std::all_of(errors.begin(), errors.end(), [](const std::string& error) { return error.empty(); })) return outputs;
  std::vector<Tensor> out;
  for (const Tensor& rows : outputs) {
    Tensor& marked = out.emplace_back(rows.type());
    std::copy(rows.bytes().begin(), rows.bytes().end(), marked.bytes().begin());
    const size_t elements = static_cast<size_t>(rows.elements()) / errors.size();
    dispatch(rows.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T mark = static_cast<T>(is_float(dtype_of<T>()) ? std::numeric_limits<float>::quiet_NaN() : -1.0F);
      for (size_t i = 0; i < errors.size(); ++i)
        if (!errors[i].empty()) std::fill_n(marked.as<T>().begin() + static_cast<std::ptrdiff_t>(i * elements), elements, mark);
    });
  }
  return out;
}

std::unique_ptr<ItemWriter> items_into(std::unique_ptr<RowWriter> rows) { return std::make_unique<RowItems>(std::move(rows)); }

std::unique_ptr<ItemWriter> open_item_output(const std::string& path, std::vector<ArraySpec> arrays,
                                             std::shared_ptr<const TopLabels> labels, bool named) {
  const DataFormat format = format_of_output(path);
  if (labels) labels->check(arrays);
  const bool text = format == DataFormat::csv || format == DataFormat::json_lines;
  if (labels && !text) fail<InvalidArgument>("output", "'{}' holds numbers, not labels; expected .csv or .jsonl", path);
  if (!text || (!named && !labels)) return items_into(open_output(path, std::move(arrays)));
  if (format == DataFormat::csv) return std::make_unique<CsvItems>(path, std::move(arrays), std::move(labels), named);
  return std::make_unique<JsonLineItems>(path, std::move(arrays), std::move(labels));
}

}  // namespace tutti
