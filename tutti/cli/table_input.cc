#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/cli/predict_input.h"
#include "tutti/cli/verb.h"

namespace tutti::cli {

namespace {

// Rows in pieces of one size.
class TableItems : public ItemSource {
 public:
  TableItems(SampleReader& reader, int64_t most, int64_t skip) : reader_(reader), most_(most), skip_(skip) {}
  Next next(Item& item, std::chrono::milliseconds) override {
    for (int64_t passed = 0; skip_ > 0; skip_ -= passed) {
      passed = reader_.take(std::min(skip_, most_)).samples;
      if (passed == 0)
        fail<InvalidArgument>("resume",
                              "there are {} samples less than the interrupted run finished; hint: without --resume it begins anew", skip_);
    }
    item = reader_.take(most_);
    return item.samples == 0 ? Next::end : Next::item;
  }

 private:
  SampleReader& reader_;
  int64_t most_, skip_;
};

class TableInput : public PredictInput {
 public:
  TableInput(const std::string& path, const std::string& header, std::unique_ptr<SampleReader> reader)
      : path_(path), header_(header), reader_(std::move(reader)) {}
  const std::vector<Type>& rows() const override { return reader_->rows(); }
  std::optional<int64_t> samples() const override { return reader_->samples(); }
  std::unique_ptr<ItemSource> items(int64_t most, Journal* journal) override {
    return std::make_unique<TableItems>(*reader_, most, journal ? journal->resumed() : 0);
  }
  void prepare(const Item& item, Slots slots) const override { reader_->write(item, slots); }
  bool knows_rows_by_number() const override { return reader_->knows_rows_by_number(); }
  void describe(Json& settings) const override {
    describe_file(settings, "input", path_);
    settings.set("header", header_);
  }
  std::string warning() const override { return reader_->warning(); }

 private:
  std::string path_, header_;
  std::unique_ptr<SampleReader> reader_;
};

}  // namespace

std::unique_ptr<PredictInput> open_table(const PredictSettings& settings, const keras::AnyModel& model) {
  return std::make_unique<TableInput>(settings.input, settings.header, open_table_samples(settings, model));
}

void describe_file(Json& settings, const std::string& what, const std::string& path) {
  std::error_code ignored;
  settings.set(what, path);
  settings.set(what + "'s bytes", std::filesystem::file_size(path, ignored));
  settings.set(what + "'s time", std::filesystem::last_write_time(path, ignored).time_since_epoch().count());
}

}  // namespace tutti::cli
