#include "tutti/cli/item_results.h"

#include "tutti/base/error.h"
#include "tutti/cli/results.h"

namespace tutti::cli {

namespace {

class ItemTable : public ItemWriter {
 public:
  ItemTable(Console& console, std::vector<ArraySpec> arrays, std::shared_ptr<const TopLabels> labels, bool named)
      : console_(console), arrays_(std::move(arrays)), labels_(std::move(labels)), named_(named) {
    auto& heading = rows_.emplace_back(std::vector<std::string>{named_ ? "PATH" : "SAMPLE"});
    for (const auto& array : arrays_) heading.push_back(escape(array.name, 60) + " " + to_string(array.row));
  }
  void write(const ItemRows& rows) override {
    constexpr int64_t shown_items = 10;
    for (size_t i = 0; i < static_cast<size_t>(rows.outputs.at(0).shape()[0]); ++i, ++items_) {
      if (items_ >= shown_items) continue;
      auto& cells = rows_.emplace_back(std::vector<std::string>{named_ ? escape(rows.names[i], 60) : std::to_string(items_)});
      if (!rows.errors.empty() && !rows.errors[i].empty()) {
        cells.push_back(escape(fmt::format("error: {}", rows.errors[i]), 80));
        cells.resize(arrays_.size() + 1);
      } else if (labels_) {
        std::string cell;
        for (const auto& [label, score] : labels_->of(rows.outputs[0], static_cast<int64_t>(i)))
          cell += fmt::format("{}{} {:.3g}", cell.empty() ? "" : ", ", escape(label, 40), score);
        cells.push_back(std::move(cell));
      } else {
        for (const Tensor& output : rows.outputs) cells.push_back(short_row(output, static_cast<int64_t>(i)));
      }
    }
    left_ = std::max<int64_t>(items_ - shown_items, 0);
  }
  void commit() override {
    console_.print(format_table(rows_, std::vector<bool>(arrays_.size() + 1, false)));
    if (left_ > 0) console_.print(fmt::format("and {} more; -o OUT writes them all\n", grouped(left_)));
    if (items_ == 0) console_.print(named_ ? "no images\n" : "no samples\n");
  }

 private:
  Console& console_;
  std::vector<ArraySpec> arrays_;
  std::shared_ptr<const TopLabels> labels_;
  bool named_;
  std::vector<std::vector<std::string>> rows_;
  int64_t items_ = 0, left_ = 0;
};

class ItemList : public ItemWriter {
 public:
  ItemList(Console& console, std::vector<ArraySpec> arrays, std::shared_ptr<const TopLabels> labels)
      : console_(console), arrays_(std::move(arrays)), labels_(std::move(labels)) {
    console_.print("{\"predictions\": [");
  }
  void write(const ItemRows& rows) override {
    for (size_t i = 0; i < static_cast<size_t>(rows.outputs.at(0).shape()[0]); ++i) {
      console_.print(first_ ? "\n" : ",\n");
      console_.print(item_json(arrays_, labels_.get(), rows, i).dump());
      first_ = false;
    }
  }
  void commit() override { console_.print("]"); }

 private:
  Console& console_;
  std::vector<ArraySpec> arrays_;
  std::shared_ptr<const TopLabels> labels_;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<ItemWriter> shown_results(Console& console, std::vector<ArraySpec> arrays, std::shared_ptr<const TopLabels> labels,
                                          bool named) {
  if (!named && !labels)
    return items_into(console.json ? json_results(console, std::move(arrays)) : table_results(console, std::move(arrays)));
  if (console.json) return std::make_unique<ItemList>(console, std::move(arrays), std::move(labels));
  return std::make_unique<ItemTable>(console, std::move(arrays), std::move(labels), named);
}

}  // namespace tutti::cli
