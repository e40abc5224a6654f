// Some columns of a .csv: numbers, or names of classes that become numbers.
#pragma once

#include <functional>

#include "tutti/base/json.h"
#include "tutti/data/csv.h"
#include "tutti/data/row_source.h"

namespace tutti {

// Where columns stand, by their names in the header or, as whole numbers, by their places from 0. Throws InvalidArgument for others, with
// the nearest.
std::vector<size_t> csv_places(const CsvReader& reader, const std::string& file, const Json& columns);

// Rows of these columns, [columns] of the collector's dtype. `hint`: what to do about a field that is no number, for its message.
void read_csv(const std::string& file, const std::vector<size_t>& places, DType dtype, std::string_view hint, RowCollector& rows);

// A column of names. Empty `classes` are found, and sorted.
void find_csv_classes(const std::string& file, size_t place, std::vector<std::string>& classes);
// The number of each row's class, row by row. Throws InvalidArgument for a name that is none, with its line and the nearest.
void read_csv_classes(const std::string& file, size_t place, const std::vector<std::string>& classes,
                      const std::function<void(int32_t)>& take);

}  // namespace tutti
