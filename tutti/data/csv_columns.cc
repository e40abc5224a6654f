#include "tutti/data/csv_columns.h"

#include <algorithm>
#include <map>
#include <set>

#include "tutti/base/error.h"

namespace tutti {

namespace {

constexpr size_t most_classes = 1'000'000;

size_t csv_place(const CsvReader& reader, const std::string& file, const std::string& name) {
  const auto& names = reader.names();
  const auto count = std::count(names.begin(), names.end(), name);
  if (count > 1)
    fail<InvalidArgument>("fit", "'{}' has {} columns '{}'; hint: by place, counted from 0", escape(file), count, escape(name, 60));
  if (count == 0) {
    const bool other = names.size() == 1 && names[0].find('|') != names[0].npos;
    fail<InvalidArgument>("fit", "'{}' has no column '{}'{}{}{}", escape(file), escape(name, 60), did_you_mean(name, names),
                          names.empty() ? "; its first row names none" : "",
                          other ? "; hint: fields are separated by commas, semicolons or tabs" : "");
  }
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

std::vector<size_t> csv_places(const CsvReader& reader, const std::string& file, const Json& columns) {
  std::vector<size_t> out;
  for (const Json& column : columns.items()) {
    if (column.is_int()) {
      if (column.as_int() < 0 || column.as_int() >= reader.columns())
        fail<InvalidArgument>("fit", "'{}' has {} columns, counted from 0; got {}", escape(file), reader.columns(), column.as_int());
      out.push_back(static_cast<size_t>(column.as_int()));
      continue;
    }
    const std::string& name = column.as_string();
    out.push_back(csv_place(reader, file, name));
  }
  return out;
}

void read_csv(const std::string& file, const std::vector<size_t>& places, DType dtype, std::string_view hint, RowCollector& rows) {
  CsvReader reader(file);
  const auto number_at = [&](size_t place, const std::string& text) {
    const auto number = reader.parse(text);
    if (!number)
      reader.refuse(place, text.empty() ? "is empty" : fmt::format("holds '{}', which is no number; hint: {}", escape(text, 40), hint));
    if (!is_float(dtype) && *number != static_cast<double>(static_cast<int64_t>(std::clamp(*number, -9e15, 9e15))))
      reader.refuse(place, fmt::format("holds '{}'; a whole number is needed", escape(text, 40)));
    return *number;
  };
  std::vector<std::string> fields;
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    while (reader.next_text(fields)) {
      T* to = reinterpret_cast<T*>(rows.next().data());
      for (size_t place : places) *to++ = convert_element<T>(number_at(place, fields[place]));
    }
  });
}

void find_csv_classes(const std::string& file, size_t place, std::vector<std::string>& classes) {
  std::set<std::string> names;
  CsvReader reader(file);
  std::vector<std::string> fields;
  while (reader.next_text(fields)) {
    if (fields[place].empty()) reader.refuse(place, "is empty");
    names.insert(fields[place]);
    if (names.size() > most_classes) reader.refuse(place, fmt::format("is the name of class number {}", names.size()));
  }
  classes.assign(names.begin(), names.end());
}

void read_csv_classes(const std::string& file, size_t place, const std::vector<std::string>& classes,
                      const std::function<void(int32_t)>& take) {
  std::map<std::string, int32_t, std::less<>> numbers;
  for (const std::string& name : classes) numbers.emplace(name, static_cast<int32_t>(numbers.size()));
  CsvReader reader(file);
  std::vector<std::string> fields;
  while (reader.next_text(fields)) {
    const std::string& text = fields[place];
    const auto found = numbers.find(text);
    if (found == numbers.end())
      reader.refuse(place, fmt::format("holds '{}', which is none of the classes{}", escape(text, 40), did_you_mean(text, classes)));
    take(found->second);
  }
}

}  // namespace tutti
