// Results of items, in their order; what failed has its row too, and the row says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tutti/base/json.h"
#include "tutti/data/row_writer.h"
#include "tutti/data/top_labels.h"

namespace tutti {

// Rows of a table have neither names nor errors.
struct ItemRows {
  const std::vector<std::string>& names;
  const std::vector<std::string>& errors;  // "" for an item that did not fail
  const std::vector<Tensor>& outputs;      // one an array, each [items, row...]
};

// The outputs, those of failed items overwritten: NaN, or -1 where the numbers are whole.
std::vector<Tensor> with_marks(const std::vector<Tensor>& outputs, const std::vector<std::string>& errors);

class ItemWriter {
 public:
  virtual ~ItemWriter() = default;
  virtual void write(const ItemRows& rows) = 0;
  virtual void commit() = 0;  // before it there is no file under the final name
};

// .npy, .npz: the rows. .csv: the path first; of a failed item "error: " with the reason, then empty fields. .jsonl: an object a line,
// {"path", NAME: values, ...} or {"path", "error"}. With labels, .csv and .jsonl have the most likely ones instead of all values. Items
// that are not `named` have no path.
std::unique_ptr<ItemWriter> open_item_output(const std::string& path, std::vector<ArraySpec> arrays,
                                             std::shared_ptr<const TopLabels> labels, bool named);

// Rows without names.
std::unique_ptr<ItemWriter> items_into(std::unique_ptr<RowWriter> rows);

// Item `i` as a line of .jsonl has it. `names` may be empty.
Json item_json(const std::vector<ArraySpec>& arrays, const TopLabels* labels, const ItemRows& rows, size_t i);

}  // namespace tutti
