// CsvWriter: floats in the shortest form that reads back the same, whatever the locale.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/data/csv.h"

namespace tutti {

namespace {

template <class T>
void append_number(std::string& out, T value) {
  char buffer[64];
  if constexpr (std::is_same_v<T, bool>) {
    out += value ? '1' : '0';
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) {
    append_number(out, static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value))
      out += "nan";
    else
      out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  } else {
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  }
}

// "_1_2": where in a row of this shape the element is.
std::string place_text(const Shape& row, int64_t element, char between) {
  Ints strides = row.strides();
  std::string out;
  for (int64_t axis = 0; axis < row.rank(); ++axis)
    out += fmt::format("{}{}", between, element / strides[static_cast<size_t>(axis)] % row[axis]);
  return out;
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::vector<std::string> csv_columns(const std::vector<ArraySpec>& arrays) {
  const auto columns = [&](char between) {
    std::vector<std::string> out;
    for (const auto& array : arrays)
      for (int64_t element = 0; element < array.row.elements(); ++element)
        out.push_back(array.row.elements() == 1 ? array.name : array.name + place_text(array.row, element, between));
    return out;
  };
  std::vector<std::string> out = columns('_'), sorted = out;
  std::sort(sorted.begin(), sorted.end());
  // The second value of "dense" is called as another output may be.
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() ? out : columns('.');
}

CsvWriter::CsvWriter(const std::string& path, std::vector<ArraySpec> arrays) : arrays_(std::move(arrays)), file_(path) {
  std::string line;
  for (const auto& name : csv_columns(arrays_)) line += fmt::format("{}{}", line.empty() ? "" : ",", csv_field(name));
  file_.write(line + "\n");
}

void CsvWriter::write(const std::vector<Tensor>& rows) {
  for (size_t i = 0; i < arrays_.size(); ++i) check_rows("csv", rows.at(i), arrays_[i]);
  std::string line;
  int64_t count = rows_side_by_side(arrays_, rows);
  for (int64_t row = 0; row < count; ++row) {
    line.clear();
    for (size_t i = 0; i < arrays_.size(); ++i)
      dispatch(arrays_[i].dtype, [&](auto zero) {
        int64_t elements = arrays_[i].row.elements();
        for (auto value :
             rows[i].template as<decltype(zero)>().subspan(static_cast<size_t>(row * elements), static_cast<size_t>(elements))) {
          append_number(line, value);
          line += ',';
        }
      });
    if (line.empty()) line = ",";
    line.back() = '\n';
    file_.write(line);
  }
}

std::string number_text(const Tensor& tensor, int64_t index) {
  std::string out;
  dispatch(tensor.dtype(), [&](auto zero) { append_number(out, tensor.as<decltype(zero)>()[static_cast<size_t>(index)]); });
  return out;
}

}  // namespace tutti
