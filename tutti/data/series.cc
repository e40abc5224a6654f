#include "tutti/data/series.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/utf8.h"
#include "tutti/data/csv.h"

namespace tutti {

namespace {

constexpr double missing_value = std::numeric_limits<double>::quiet_NaN();
constexpr size_t most_series = 1'000'000;

bool is_missing(std::string_view text) {
  if (text.size() > 8) return false;
  static constexpr std::string_view known[] = {"",        "na",   "n/a", "n.a.", "nan",    "-nan",    "null",    "none",    "nil",
                                               "missing", "#n/a", "#na", "<na>", "\\n",    ".",       "..",      "...",     "-",
                                               "--",      ":",    "?",   "*",    "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"};
  return std::ranges::find(known, in_lower_case(text)) != std::end(known);
}

class SeriesReader {
 public:
  SeriesReader(std::shared_ptr<const ByteSource> source, const std::string& file, const SeriesColumns& columns)
      : file_(file), columns_(columns), csv_(std::move(source), file, CsvHeader::present) {}

  SeriesTable read() {
    std::vector<std::string> row;
    bool more = csv_.next_text(row);
    if (!more) fail<InvalidArgument>("series", "{}: has a header and no rows", escape(file_));
    find_columns(row);
    StampReader stamps(fmt::format("{}: column '{}'", escape(file_), escape(columns_.time, 40)));
    for (; more; more = csv_.next_text(row))
      if (std::any_of(row.begin(), row.end(), [](const auto& field) { return !field.empty(); }))
        take(row, stamps);  // spreadsheets end in others
    StampColumn times = stamps.finish();
    ticks_ = std::move(times.ticks);

    std::vector<std::vector<int64_t>> ticks;
    for (auto& rows : rows_of_) ticks.push_back(in_order(rows));
    SeriesTable out{columns_, TimeAxis(times.format, ticks), {}, {}};
    for (size_t i = 0; i < ids_.size(); ++i) out.series.push_back(complete(ids_[i], rows_of_[i], out.axis));
    warn(out.warnings);
    return out;
  }

 private:
  size_t column(const std::string& name, std::string_view option) const {
    const auto& names = csv_.names();
    const auto count = std::count(names.begin(), names.end(), name);
    if (count == 1) return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (count > 1) fail<InvalidArgument>("series", "{}: {} columns are named '{}' ({})", escape(file_), count, escape(name, 40), option);
    std::string all;
    for (size_t i = 0; i < std::min<size_t>(names.size(), 12); ++i) all += (i ? ", " : "") + fmt::format("'{}'", escape(names[i], 40));
    fail<InvalidArgument>("series", "{}: there is no column '{}' ({}){}; the columns are {}{}{}", escape(file_), escape(name, 40), option,
                          did_you_mean(name, names), all, names.size() > 12 ? ", ..." : "", hint_of_header(names));
  }

  static std::string_view hint_of_header(const std::vector<std::string>& names) {
    if (names.size() == 1 && names[0].find('|') != names[0].npos) return "; hint: fields are separated by commas, semicolons or tabs";
    const auto is_value = [](const std::string& name) { return parse_double(name).has_value() || StampReader::is_date(name); };
    return std::any_of(names.begin(), names.end(), is_value) ? "; hint: the first line gives the columns their names" : "";
  }

  // The first row helps to find the time.
  void find_columns(const std::vector<std::string>& row) {
    values_.push_back(column(columns_.target, "--target"));
    for (const auto& name : columns_.features) {
      values_.push_back(column(name, "--features"));
      if (std::count(values_.begin(), values_.end(), values_.back()) > 1)
        fail<InvalidArgument>("series", "'{}' is given twice among target and features", escape(name, 40));
    }
    if (!columns_.id.empty()) id_ = column(columns_.id, "--id");
    if (columns_.time.empty()) columns_.time = csv_.names()[find_time(row)];
    time_ = column(columns_.time, "--time");
    if (is_taken(time_))
      fail<InvalidArgument>("series", "'{}' is the time and cannot be target, feature or id as well", escape(columns_.time, 40));
  }

  bool is_taken(size_t at) const { return (id_ && *id_ == at) || std::count(values_.begin(), values_.end(), at) > 0; }

  // A date under a usual name, else the first date, else a usual name alone: its numbers are steps.
  size_t find_time(const std::vector<std::string>& row) const {
    static const std::vector<std::string> usual = {"time",  "date",    "datetime", "timestamp", "ds",
                                                   "month", "quarter", "year",     "day",       "step"};
    const auto& names = csv_.names();
    std::optional<size_t> date, name;
    auto named_before = usual.end();
    for (size_t i = 0; i < names.size(); ++i) {
      if (is_taken(i)) continue;
      const bool is_date = StampReader::is_date(row[i]);
      const auto named = std::find(usual.begin(), usual.end(), in_lower_case(names[i]));
      if (is_date && named != usual.end()) return i;
      if (is_date && !date) date = i;
      if (named < named_before) name = i, named_before = named;
    }
    if (date || name) return date ? *date : *name;
    fail<InvalidArgument>("series", "{}: no column is named as a time (date, time, month, ...) or holds dates; hint: --time COLUMN",
                          escape(file_));
  }

  void take(const std::vector<std::string>& row, StampReader& stamps) {
    stamps.add(row[time_], csv_.line());
    size_t series = 0;
    const std::string id = id_ ? row[*id_] : std::string();
    if (id_ && id.empty()) csv_.refuse(*id_, "is empty; every row says to which series it belongs");
    auto [found, fresh] = index_.try_emplace(id, ids_.size());
    if (fresh) {
      if (ids_.size() == most_series) csv_.refuse(*id_, fmt::format("begins more than {} series", most_series));
      ids_.push_back(id);
      rows_of_.emplace_back();
    }
    series = found->second;
    rows_of_[series].push_back(lines_.size());
    lines_.push_back(csv_.line());
    for (size_t at : values_) {
      if (is_missing(row[at])) {
        numbers_.push_back(missing_value);
        continue;
      }
      auto value = csv_.parse(row[at]);
      if (!value || !std::isfinite(*value)) {
        const bool has_digits = row[at].find_first_of("0123456789") != row[at].npos;
        csv_.refuse(at, fmt::format("is not a finite number; got '{}'; hint: {}", escape(row[at], 40),
                                    has_digits ? "a number has digits and a decimal point, nothing between thousands and no unit"
                                               : "an empty field, NA or NaN is a missing value"));
      }
      numbers_.push_back(*value);
    }
  }

  double number(size_t row, size_t column) const { return numbers_[row * values_.size() + column]; }

  // Sorts the rows by time; gives the times.
  std::vector<int64_t> in_order(std::vector<size_t>& rows) const {
    std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return ticks_[a] < ticks_[b]; });
    std::vector<int64_t> out;
    out.reserve(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i > 0 && ticks_[rows[i]] == ticks_[rows[i - 1]])
        fail<InvalidArgument>("series", "{}: lines {} and {} have the same time{}; {}", escape(file_), lines_[rows[i - 1]], lines_[rows[i]],
                              id_ ? " and the same id" : "",
                              id_ ? "a series has each time once"
                                  : "hint: --id COLUMN where the file holds several series; an offset from UTC where clocks were set back");
      out.push_back(ticks_[rows[i]]);
    }
    return out;
  }

  Series complete(const std::string& id, const std::vector<size_t>& rows, const TimeAxis& axis) {
    auto known = [&](size_t row) { return !std::isnan(number(row, 0)); };
    const auto first = std::find_if(rows.begin(), rows.end(), known);
    if (first == rows.end())
      fail<InvalidArgument>("series", "{}: {}every '{}' is missing", escape(file_), of_series(id), escape(columns_.target, 40));
    const auto last = std::find_if(rows.rbegin(), rows.rend(), known).base();  // behind it

    Series out;
    out.id = id;
    out.first = axis.ordinal(ticks_[*first]);
    auto step_of = [&](size_t row) { return (axis.ordinal(ticks_[row]) - out.first) / axis.count(); };
    const int64_t length = step_of(*(last - 1)) + 1;
    const int64_t given = std::count_if(first, last, known);
    check_given(id, 0, given, length, axis);
    const auto at_rows = static_cast<int64_t>(last - first);
    no_row_ += length - at_rows;
    missing_target_ += length - given;
    targets_ += length;

    out.target.assign(static_cast<size_t>(length), missing_value);
    for (auto row = first; row != last; ++row) out.target[static_cast<size_t>(step_of(*row))] = number(*row, 0);
    for (double value : out.target) out.made_up.push_back(std::isnan(value));
    interpolate(out.target);
    for (size_t feature = 1; feature < values_.size(); ++feature) add_feature(out, feature, {first, rows.end()}, step_of, axis);
    return out;
  }

  void add_feature(Series& series, size_t feature, std::span<const size_t> rows, const auto& step_of, const TimeAxis& axis) {
    int64_t end = series.length(), given = 0;  // known to which step
    for (size_t row : rows)
      if (!std::isnan(number(row, feature))) {
        end = std::max(end, step_of(row) + 1);
        ++given;
      }
    check_given(series.id, feature, given, end, axis);
    std::vector<double>& out = series.features.emplace_back(static_cast<size_t>(end), missing_value);
    for (size_t row : rows)
      if (const int64_t step = step_of(row); step < end) out[static_cast<size_t>(step)] = number(row, feature);
    missing_features_ += end - given;
    std::vector<bool>& made_up = series.made_up_features.emplace_back();
    for (double value : out) made_up.push_back(std::isnan(value));
    interpolate(out);
  }

  // More than half made up is no series any more. Also what bounds the memory: no more steps than twice the rows.
  void check_given(const std::string& id, size_t value, int64_t given, int64_t steps, const TimeAxis& axis) const {
    if (steps - given <= steps / 2 && given > 0) return;
    const std::string& name = value == 0 ? columns_.target : columns_.features[value - 1];
    fail<InvalidArgument>(
        "series",
        "{}: {}'{}' has {} values where {} times from its first to its last would have {}, and at most half may be missing; "
        "hint: times that are not regular make the step small",
        escape(file_), of_series(id), escape(name, 40), given, axis.frequency(), steps);
  }

  static void interpolate(std::vector<double>& values) {
    size_t before = values.size();  // the last known so far, or none
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) continue;
      for (size_t gap = before == values.size() ? 0 : before + 1; gap < i; ++gap) {
        const double part = before == values.size() ? 1 : static_cast<double>(gap - before) / static_cast<double>(i - before);
        values[gap] = before == values.size() ? values[i] : std::lerp(values[before], values[i], part);
      }
      before = i;
    }
    for (size_t gap = before + 1; gap < values.size(); ++gap) values[gap] = values[before];
  }

  std::string of_series(const std::string& id) const { return id_ ? fmt::format("series '{}': ", escape(id, 40)) : ""; }

  void warn(std::vector<std::string>& warnings) const {
    if (missing_target_ > 0)
      warnings.push_back(fmt::format("[series] {} of {} values of '{}' are missing ({} have no row) and are interpolated", missing_target_,
                                     targets_, escape(columns_.target, 40), no_row_));
    if (missing_features_ > 0)
      warnings.push_back(fmt::format(
          "[series] {} values of the features are missing and are interpolated; at the edges the nearest is taken", missing_features_));
  }

  std::string file_;
  SeriesColumns columns_;
  CsvReader csv_;
  size_t time_ = 0;
  std::optional<size_t> id_;
  std::vector<size_t> values_;   // columns: the target, then the features
  std::vector<int64_t> lines_;   // of each row
  std::vector<double> numbers_;  // [row, value]
  std::vector<int64_t> ticks_;   // of each row
  std::map<std::string, size_t> index_;
  std::vector<std::string> ids_;
  std::vector<std::vector<size_t>> rows_of_;  // of each series
  int64_t targets_ = 0, missing_target_ = 0, no_row_ = 0, missing_features_ = 0;
};

}  // namespace

SeriesTable read_series(std::shared_ptr<const ByteSource> source, const std::string& file, const SeriesColumns& columns) {
  return SeriesReader(std::move(source), file, columns).read();
}

SeriesTable read_series(const std::string& path, const SeriesColumns& columns) { return read_series(open_file(path), path, columns); }

}  // namespace tutti
