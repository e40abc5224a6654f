// Numbers in comma-separated text: read in blocks of rows whatever the file's size, written so that every value is read back exactly.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/data/rows.h"

namespace tutti {

enum class CsvHeader { detect, present, absent };  // detect: the first row is one when none of its fields is a number

// Every field below the header is a number. An empty one is an error, because a missing value that turns into a prediction is damage
// nobody sees (a "nan" written out is taken). Rows have equally many fields; blank lines stand at the end only. Quotes, \r\n and a UTF-8
// byte order mark are understood, the locale is not asked. Where the first row has no comma, semicolons or tabs separate; between
// semicolons a number may have a decimal comma.
class CsvReader {
 public:
  // `file` names the source in messages.
  CsvReader(std::shared_ptr<const ByteSource> source, std::string file, CsvHeader header = CsvHeader::detect);
  explicit CsvReader(const std::string& path, CsvHeader header = CsvHeader::detect) : CsvReader(open_file(path), path, header) {}

  int64_t columns() const { return static_cast<int64_t>(columns_); }
  const std::vector<std::string>& names() const { return names_; }  // of the columns; none without a header
  // Taken for data, but 0, 1, 2, ... is also what pandas writes above columns without names.
  bool first_row_counts() const { return first_row_counts_; }
  // The next rows, at most `count`, as [rows, columns] of `dtype`; fewer at the end of the file, then none. For an integer dtype each
  // field is a whole number within its range.
  Tensor next(int64_t count, DType dtype);
  // The next row as text, without quotes and outer spaces; false at the end of the file.
  bool next_text(std::vector<std::string>& fields);
  int64_t line() const { return line_; }  // on which the row at hand begins
  // A field as a number, as parse_double() reads it but for the decimal comma.
  std::optional<double> parse(std::string_view text) const;
  // Throws InvalidArgument with the line and the column of the row at hand.
  [[noreturn]] void refuse(size_t column, std::string_view why) const;

 private:
  struct Field {
    size_t begin, end;  // in buffer_, without quotes and outer spaces
    bool quoted;
  };
  void find_separator();
  bool is_blank(char c) const { return c == ' ' || (c == '\t' && separator_ != '\t'); }
  bool next_row();  // splits the next row into fields_; false at the end
  bool split_line();
  Field split_field();
  bool more();  // whether buffer_ has a byte at at_; reads on if need be
  std::string_view text(const Field& field) const;
  std::string unquoted(const Field& field) const;
  template <class T>
  T number(size_t column) const;
  [[noreturn]] void refuse_line(int64_t line, std::string_view why) const;

  std::shared_ptr<const ByteSource> source_;
  std::string file_;
  uint64_t read_ = 0;   // bytes of the source taken into buffer_
  std::string buffer_;  // from the row at hand on
  size_t at_ = 0, row_begin_ = 0;
  int64_t line_ = 0, lines_ = 0;  // the line on which the row at hand begins; lines ended
  std::vector<Field> fields_;
  char separator_ = ',';
  bool first_row_counts_ = false;
  bool pending_ = false;  // fields_ holds a row that next() has not given out
  size_t columns_ = 0;
  std::vector<std::string> names_;
};

// A header with a name per column (NAME, or NAME_0, NAME_1_2 for rows of several elements), then a row per sample: the arrays side by side.
class CsvWriter {
 public:
  CsvWriter(const std::string& path, std::vector<ArraySpec> arrays);
  void write(const std::vector<Tensor>& rows);  // one tensor an array, each [count, row...]
  void commit() { file_.commit(false); }

 private:
  std::vector<ArraySpec> arrays_;
  OutputFile file_;
};

// Any decimal number, inf or nan; nothing for other text, and for what is beyond float64.
std::optional<double> parse_double(std::string_view text);

// Names of the columns in which these arrays stand side by side.
std::vector<std::string> csv_columns(const std::vector<ArraySpec>& arrays);

// As a field: in quotes when it holds a comma, a quote or a line's end.
std::string csv_field(std::string_view text);

// The shortest text that is read back as the same value.
std::string number_text(const Tensor& tensor, int64_t index);

}  // namespace tutti
