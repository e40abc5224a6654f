#include "tutti/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "tutti/base/error.h"

namespace tutti {

namespace {

constexpr size_t read_bytes = 1 << 20;
// Budgets of one row: those of an image of 512 x 512 pixels fit.
constexpr size_t longest_row = 16 << 20, most_fields = 1 << 20;

bool ends_line(char c) { return c == '\n' || c == '\r'; }

template <class T>
std::optional<T> parse_digits(std::string_view text) {
  const char* end = text.data() + text.size();
  T value = 0;
  auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

// 3.0, 1e3, +5
std::optional<int64_t> whole(std::optional<double> real) {
  constexpr double bound = 9223372036854775808.0;
  if (!real || *real != std::trunc(*real) || *real < -bound || *real >= bound) return {};
  return static_cast<int64_t>(*real);
}

// Within quotes a doubled quote stands for one.
std::string undoubled(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '"') ++i;
  }
  return out;
}

}  // namespace

// Python and NumPy take a leading plus, from_chars does not.
std::optional<double> parse_double(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  double value = 0;
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end) {
    // Too small is zero, too large is an error: the wider type tells them apart.
    long double wide = 0;
    if (std::from_chars(text.data(), end, wide).ec != std::errc{}) return {};
    value = static_cast<double>(wide);
    if (std::isinf(value)) return {};
    return value;
  }
  if (error != std::errc{} || stop != end) return {};
  return value;
}

CsvReader::CsvReader(std::shared_ptr<const ByteSource> source, std::string file, CsvHeader header)
    : source_(std::move(source)), file_(std::move(file)) {
  more();
  if (buffer_.starts_with("\xff\xfe") || buffer_.starts_with("\xfe\xff"))
    fail<Unsupported>("csv", "{}: is UTF-16 text; hint: save it as UTF-8", file_);
  if (buffer_.starts_with("\xef\xbb\xbf")) at_ = 3;
  find_separator();
  if (!next_row()) fail<InvalidArgument>("csv", "{}: is empty; expected rows of numbers, with or without a header", file_);
  columns_ = fields_.size();
  auto is_number = [&](const Field& field) { return parse(text(field)).has_value(); };
  if (header == CsvHeader::present || (header == CsvHeader::detect && std::none_of(fields_.begin(), fields_.end(), is_number))) {
    for (const Field& field : fields_) names_.push_back(unquoted(field));
  } else {
    pending_ = true;
    first_row_counts_ = header == CsvHeader::detect && columns_ > 1;
    for (size_t i = 0; i < columns_; ++i) first_row_counts_ = first_row_counts_ && text(fields_[i]) == std::to_string(i);
  }
}

// By the first row, or by so much of it as was read at once.
void CsvReader::find_separator() {
  // Spreadsheets write "sep=;" above all else.
  const std::string_view begin = std::string_view(buffer_).substr(at_, 6);
  if (begin.size() == 6 && begin.starts_with("sep=") && std::string_view(",;\t").find(begin[4]) != begin.npos && ends_line(begin[5])) {
    separator_ = begin[4];
    split_line();
    return;
  }
  bool quoted = false, has_semicolon = false, has_tab = false, ends_in_tab = false;
  for (size_t at = at_; at < buffer_.size() && (quoted || !ends_line(buffer_[at])); ++at) {
    const char c = buffer_[at];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ',') return;
    has_semicolon = has_semicolon || c == ';';
    has_tab = has_tab || (ends_in_tab && !is_blank(c));
    ends_in_tab = c == '\t' || (ends_in_tab && is_blank(c));
  }
  separator_ = has_semicolon ? ';' : has_tab ? '\t' : ',';
}

std::optional<double> CsvReader::parse(std::string_view text) const {
  const auto found = parse_double(text);
  const size_t comma = text.find(',');
  if (found || separator_ != ';' || comma == text.npos || text.find('.') != text.npos) return found;
  std::string pointed(text);
  pointed[comma] = '.';
  return parse_double(pointed);
}

Tensor CsvReader::next(int64_t count, DType dtype) {
  // A field takes two bytes at least, so the file says how many rows there can be.
  count = std::min(count, static_cast<int64_t>(source_->size() / (2 * columns_)) + 1);
  Tensor out(dtype, {count, columns()});
  int64_t rows = 0;
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    auto target = out.as<T>();
    for (; rows < count && (pending_ || next_row()); ++rows) {
      pending_ = false;
      for (size_t column = 0; column < columns_; ++column) {
        T& to = target[static_cast<size_t>(rows) * columns_ + column];
        if constexpr (is_float(dtype_of<T>())) {
          to = convert_element<T>(number<double>(column));
        } else {
          if constexpr (std::is_same_v<T, uint64_t>)  // more than int64 holds
            if (const auto large = parse_digits<uint64_t>(text(fields_[column]))) {
              to = *large;
              continue;
            }
          auto value = number<int64_t>(column);
          to = convert_element<T>(value);
          if (static_cast<int64_t>(to) != value || (value < 0 && !is_signed(dtype_of<T>())))
            refuse(column, fmt::format("{} is outside of {}", value, numpy_name(dtype)));
        }
      }
    }
  });
  if (rows == count) return out;
  Tensor fewer(dtype, {rows, columns()});
  std::copy_n(out.bytes().begin(), fewer.bytes().size(), fewer.bytes().begin());
  return fewer;
}

bool CsvReader::next_text(std::vector<std::string>& fields) {
  if (!pending_ && !next_row()) return false;
  pending_ = false;
  fields.clear();
  for (const Field& field : fields_) fields.push_back(unquoted(field));
  return true;
}

bool CsvReader::next_row() {
  if (!split_line()) return false;
  auto blank = [&] { return fields_.size() == 1 && !fields_[0].quoted && text(fields_[0]).empty(); };
  if (blank()) {
    int64_t first = line_;
    while (split_line())
      if (!blank()) refuse_line(first, "is blank; blank lines stand at the end only");
    return false;
  }
  if (columns_ != 0 && fields_.size() != columns_) {
    const bool is_below_title = columns_ == 1 && line_ <= 2;
    refuse_line(line_, fmt::format("has {} fields; the rows before it have {}{}", fields_.size(), columns_,
                                   is_below_title ? "; hint: nothing stands above the header" : ""));
  }
  return true;
}

bool CsvReader::split_line() {
  if (at_ >= read_bytes) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  row_begin_ = at_;
  line_ = lines_ + 1;
  fields_.clear();
  if (!more()) return false;
  do {
    if (fields_.size() == most_fields) refuse_line(line_, fmt::format("has more than {} fields", most_fields));
    fields_.push_back(split_field());
  } while (more() && buffer_[at_] == separator_ && ++at_);
  if (more() && buffer_[at_] == '\r') ++at_;
  if (more() && buffer_[at_] == '\n') ++at_;
  ++lines_;
  return true;
}

// Leaves at_ on the comma or the line's end.
CsvReader::Field CsvReader::split_field() {
  while (more() && is_blank(buffer_[at_])) ++at_;
  if (!more() || buffer_[at_] != '"') {
    Field field{at_, at_, false};
    while (more() && buffer_[at_] != separator_ && !ends_line(buffer_[at_])) ++at_;
    field.end = at_;
    while (field.end > field.begin && is_blank(buffer_[field.end - 1])) --field.end;
    return field;
  }
  Field field{++at_, 0, true};
  for (;; ++at_) {
    if (!more()) refuse_line(line_, "has a quote that is never closed");
    if (buffer_[at_] == '\n') ++lines_;
    if (buffer_[at_] != '"') continue;
    field.end = at_++;
    if (!more() || buffer_[at_] != '"') break;
  }
  while (more() && is_blank(buffer_[at_])) ++at_;
  if (more() && buffer_[at_] != separator_ && !ends_line(buffer_[at_]))
    refuse_line(line_, fmt::format("has text after a closing quote in field {}", fields_.size() + 1));
  return field;
}

bool CsvReader::more() {
  if (at_ < buffer_.size()) return true;
  if (read_ == source_->size()) return false;
  if (at_ - row_begin_ > longest_row) refuse_line(line_, fmt::format("is longer than {} bytes", longest_row));
  size_t held = buffer_.size(), count = std::min<uint64_t>(read_bytes, source_->size() - read_);
  buffer_.resize(held + count);
  source_->read(read_, std::as_writable_bytes(std::span(buffer_).subspan(held)));
  read_ += count;
  return true;
}

std::string_view CsvReader::text(const Field& field) const {
  return std::string_view(buffer_).substr(field.begin, field.end - field.begin);
}

std::string CsvReader::unquoted(const Field& field) const { return field.quoted ? undoubled(text(field)) : std::string(text(field)); }

template <class T>
T CsvReader::number(size_t column) const {
  std::string_view written = text(fields_[column]);
  std::optional<T> value;
  if constexpr (std::is_same_v<T, double>)
    value = parse(written);
  else if (value = parse_digits<int64_t>(written); !value)
    value = whole(parse(written));
  if (value) return *value;
  if (written.empty()) refuse(column, "is empty; hint: leave no value out, or write nan for a float input that may have gaps");
  std::string shown = escape(written, 40);
  if (auto real = parse(written); real && std::is_same_v<T, int64_t>)
    refuse(column, fmt::format("expected a whole number; got '{}'", shown));
  std::string hint;
  if (written.find_first_of(";\t|") != written.npos)
    hint = "; hint: fields are separated by commas; by semicolons or tabs where the first row has no comma";
  else if (line_ == 1)
    hint = "; hint: a header has no numbers in it";
  refuse(column, fmt::format("is not a number (or beyond float64); got '{}'{}", shown, hint));
}

void CsvReader::refuse(size_t column, std::string_view why) const {
  std::string name = names_.empty() ? "" : fmt::format(" ('{}')", escape(names_[column], 40));
  fail<InvalidArgument>("csv", "{}: line {}, column {}{}: {}", file_, line_, column + 1, name, why);
}

void CsvReader::refuse_line(int64_t line, std::string_view why) const { fail<InvalidArgument>("csv", "{}: line {} {}", file_, line, why); }

}  // namespace tutti
