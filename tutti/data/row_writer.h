// Results, row by row, into a file of the format its name says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tutti/data/rows.h"

namespace tutti {

class RowWriter {
 public:
  virtual ~RowWriter() = default;
  virtual void write(const std::vector<Tensor>& rows) = 0;  // one tensor an array, each [count, row...]
  virtual void commit() = 0;                                // before it there is no file under the final name
};

// .npy takes one array; .npz, .csv and .jsonl (an object a row) any number. bfloat16, which NumPy does not have, is written as float32.
std::unique_ptr<RowWriter> open_output(const std::string& path, std::vector<ArraySpec> arrays);

}  // namespace tutti
