// Predictions on stdout, for people and for programs.
#pragma once

#include <memory>
#include <vector>

#include "tutti/base/json.h"
#include "tutti/cli/console.h"
#include "tutti/data/row_writer.h"

namespace tutti::cli {

// The first samples, a few values of each; commit() prints.
std::unique_ptr<RowWriter> table_results(Console& console, std::vector<ArraySpec> arrays);

// {"predictions": [{"OUTPUT": nested values, ...}, ...]: a sample at a time, however many there are. The object is left open for what the
// verb has to add: members that begin with ", ".
std::unique_ptr<RowWriter> json_results(Console& console, std::vector<ArraySpec> arrays);

Json shape_json(const Shape& shape);

// The first values of a row, in columns.
std::string short_row(const Tensor& rows, int64_t row);

}  // namespace tutti::cli
