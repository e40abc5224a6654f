// What `tutti predict` predicts: images, or the rows of a table.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/cli/predict_settings.h"
#include "tutti/data/items.h"
#include "tutti/data/journal.h"

namespace tutti::cli {

class PredictInput {
 public:
  virtual ~PredictInput() = default;
  virtual const std::vector<Type>& rows() const = 0;  // one sample of each of the model's inputs
  virtual std::optional<int64_t> samples() const = 0;
  // What there is, at most `most` samples at once; what the journal's earlier runs finished is passed over, and must be the same.
  virtual std::unique_ptr<ItemSource> items(int64_t most, Journal* journal) = 0;
  virtual void prepare(const Item& item, Slots slots) const = 0;
  // Whether prepare() takes any rows of an item, by `first` and `samples`.
  virtual bool knows_rows_by_number() const { return false; }
  // Adds what must be the same for an interrupted run to go on.
  virtual void describe(Json& settings) const = 0;
  virtual std::string warning() const { return ""; }

  std::string noun = "samples";
  bool named = false;     // items have names, which results begin with
  bool only_one = false;  // if it fails, so does the verb
};

// Where INPUT and --files name images: a file, a folder, a list or an archive of them. Else null.
std::unique_ptr<PredictInput> find_images(const PredictSettings& settings, const keras::AnyModel& model);
std::unique_ptr<PredictInput> open_table(const PredictSettings& settings, const keras::AnyModel& model);

// When a file was last written and its size: another one has others.
void describe_file(Json& settings, const std::string& what, const std::string& path);

}  // namespace tutti::cli
