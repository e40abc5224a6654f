// Some columns of a .csv: numbers, or names of classes that become numbers.
#pragma once

#include "tutti/base/json.h"
#include "tutti/data/csv.h"

namespace tutti {

// Where columns stand, by their names in the header or, as whole numbers, by their places from 0. Throws InvalidArgument for others, with
// the nearest.
std::vector<size_t> csv_places(const CsvReader& reader, const std::string& file, const Json& columns);

// [rows, columns] of `dtype`.
Tensor read_csv(const std::string& file, const std::vector<size_t>& places, DType dtype);

// A column of names: their numbers, i32 [rows]. Empty `classes` are found, and sorted. Throws InvalidArgument for a name that is none, with
// its line and the nearest.
Tensor read_csv_classes(const std::string& file, size_t place, std::vector<std::string>& classes);

}  // namespace tutti
