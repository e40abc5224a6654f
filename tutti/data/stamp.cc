#include "tutti/data/stamp.h"

#include <algorithm>
#include <charconv>

#include "tutti/base/error.h"

namespace tutti {

namespace {

constexpr int64_t largest_step = 1'000'000'000'000'000;

// Reads a field from left to right; every take_ leaves the text as it was when it fails.
class StampText {
 public:
  explicit StampText(std::string_view text) : text_(text) {}
  bool done() const { return text_.empty(); }
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  char take_any(std::string_view choices) {
    if (text_.empty() || choices.find(text_.front()) == choices.npos) return '\0';
    char found = text_.front();
    text_.remove_prefix(1);
    return found;
  }
  // Between `least` and `most` digits, all that stand here.
  std::optional<int> take_digits(size_t least, size_t most) {
    size_t count = std::min(text_.find_first_not_of("0123456789"), text_.size());
    if (count < least || count > most) return {};
    int value = 0;
    std::from_chars(text_.data(), text_.data() + count, value);
    text_.remove_prefix(count);
    return value;
  }
  size_t size() const { return text_.size(); }

 private:
  std::string_view text_;
};

// "T10:30:15.25+01:00", or nothing at all. False where it is neither.
bool take_clock(StampText& text, StampFormat& format, int64_t& clock) {
  if (text.done()) return true;
  format.between = text.take_any("T t");
  if (format.between == '\0') return false;
  if (format.between == 't') format.between = 'T';
  auto hours = text.take_digits(1, 2);
  if (!hours || *hours > 23 || !text.take(':')) return false;
  auto minutes = text.take_digits(2, 2);
  if (!minutes || *minutes > 59) return false;
  clock = (*hours * 60 + *minutes) * (60 * ticks_per_second);
  format.clock = StampFormat::Clock::minutes;
  if (text.take(':')) {
    auto seconds = text.take_digits(2, 2);
    if (!seconds || *seconds > 59) return false;
    clock += *seconds * ticks_per_second;
    format.clock = StampFormat::Clock::seconds;
    if (text.take_any(".,") != '\0') {
      format.clock = StampFormat::Clock::fraction;
      int64_t unit = ticks_per_second;
      while (auto digit = text.take_any("0123456789")) {
        unit /= 10;
        if (unit == 0 && digit != '0') return false;
        clock += (digit - '0') * unit;
        if (unit > 0) ++format.fraction_digits;
      }
      if (format.fraction_digits == 0) return false;
    }
  }
  while (text.take(' ')) {
  }
  if (text.take_any("Zz") != '\0') {
    format.zone = StampFormat::Zone::utc;
  } else if (char sign = text.take_any("+-"); sign != '\0') {
    size_t digits = text.size();
    auto zone_hours = text.take_digits(2, 2);
    std::optional<int> zone_minutes = 0;
    if (zone_hours) {
      if (text.take(':')) zone_minutes = text.take_digits(2, 2);
    } else if (auto both = text.take_digits(4, 4); both && digits == 4) {
      zone_hours = *both / 100, zone_minutes = *both % 100;
    }
    if (!zone_hours || !zone_minutes || *zone_hours > 18 || *zone_minutes > 59) return false;
    format.zone = StampFormat::Zone::offset;
    format.offset_minutes = (sign == '-' ? -1 : 1) * (*zone_hours * 60 + *zone_minutes);
  }
  return text.done();
}

std::chrono::year_month_day date_from(int year, int month, int day) {
  return {std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)), std::chrono::day(static_cast<unsigned>(day))};
}

}  // namespace

std::chrono::year_month_day date_of_day(int64_t day) {
  return std::chrono::sys_days(std::chrono::days(static_cast<std::chrono::days::rep>(day)));
}

int64_t day_of_date(std::chrono::year_month_day date) { return std::chrono::sys_days(date).time_since_epoch().count(); }

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// Everything but what only the whole column can tell: which of two numbers is the month, and what plain numbers mean.
std::optional<StampReader::Stamp> StampReader::parse(std::string_view written) {
  Stamp out;
  const char* end = written.data() + written.size();
  if (auto [stop, error] = std::from_chars(written.data(), end, out.number); error == std::errc{} && stop == end) return out;

  using Kind = StampFormat::Kind;
  StampText text(written);
  auto leading = text.take_digits(1, 4);
  if (!leading) return {};
  const size_t digits = written.size() - text.size();
  if (digits == 4) {
    out.year = *leading;
    out.format.separator = text.take_any("-/.");
    if (text.take_any("Qq") != '\0') {
      out.format.kind = Kind::quarter;
      auto quarter = text.take_digits(1, 1);
      if (!quarter || *quarter < 1 || *quarter > 4 || !text.done()) return {};
      out.first = *quarter * 3 - 2, out.second = 1;
      return out;
    }
    if (out.format.separator == '\0') return {};
    auto month = text.take_digits(1, 2);
    if (!month) return {};
    out.first = *month, out.second = 1;
    if (text.done()) {
      out.format.kind = Kind::month;
      return out;
    }
    if (!text.take(out.format.separator)) return {};
    auto day = text.take_digits(1, 2);
    if (!day) return {};
    out.second = *day;
  } else {
    if (digits > 2) return {};
    out.format.separator = text.take_any("-/.");
    if (out.format.separator == '\0') return {};
    auto second = text.take_digits(1, 2);
    if (!second || !text.take(out.format.separator)) return {};
    auto year = text.take_digits(4, 4);
    if (!year) return {};
    out.first = *leading, out.second = *second, out.year = *year;
    out.format.order = StampFormat::Order::day_first;
  }
  out.format.kind = Kind::date;
  if (!take_clock(text, out.format, out.clock)) return {};
  return out;
}

bool StampReader::is_date(std::string_view text) {
  auto found = parse(text);
  return found && found->format.kind != StampFormat::Kind::step;
}

void StampReader::add(std::string_view text, int64_t line) {
  auto found = parse(text);
  lines_.push_back(line);
  if (!found)
    refuse(
        static_cast<int64_t>(lines_.size()) - 1,
        fmt::format("is not a time that is read; got '{}'; hint: 2020-01-31, 2020-01-31T10:30:00, 2020-01, Unix seconds or whole numbers",
                    escape(text, 40)));
  if (!stamps_.empty()) {
    const StampFormat &first = stamps_[0].format, &now = found->format;
    if (now.kind != first.kind || now.order != first.order || now.separator != first.separator)
      refuse(static_cast<int64_t>(stamps_.size()),
             fmt::format("is written another way than in line {}; got '{}'; one column has one way", lines_[0], escape(text, 40)));
    if ((now.zone == StampFormat::Zone::none) != (first.zone == StampFormat::Zone::none) && now.clock != StampFormat::Clock::none &&
        first.clock != StampFormat::Clock::none)
      refuse(static_cast<int64_t>(stamps_.size()),
             fmt::format("has {} and line {} has {}; got '{}'", now.zone == StampFormat::Zone::none ? "no offset from UTC" : "one",
                         lines_[0], first.zone == StampFormat::Zone::none ? "none" : "one", escape(text, 40)));
  }
  stamps_.push_back(*found);
}

// 01/02/2020: a number above 12 in one row says what all of them mean.
void StampReader::decide_order(StampFormat& format) const {
  if (format.order == StampFormat::Order::year_first || format.separator == '.') return;
  int64_t first_above = -1, second_above = -1;
  for (size_t row = 0; row < stamps_.size(); ++row) {
    if (stamps_[row].first > 12 && first_above < 0) first_above = static_cast<int64_t>(row);
    if (stamps_[row].second > 12 && second_above < 0) second_above = static_cast<int64_t>(row);
  }
  if (first_above >= 0 && second_above >= 0)
    refuse(second_above, fmt::format("has the month first, line {} the day", lines_[static_cast<size_t>(first_above)]));
  if (first_above < 0 && second_above < 0)
    refuse(0, fmt::format("may mean {:02}{}{:02} as day and month or as month and day, and no row tells; hint: write {:04}-{:02}-{:02}",
                          stamps_[0].first, format.separator, stamps_[0].second, stamps_[0].year, stamps_[0].second, stamps_[0].first));
  if (second_above >= 0) format.order = StampFormat::Order::month_first;
}

void StampReader::decide_numbers(StampFormat& format) const {
  auto within = [&](int64_t least, int64_t most) {
    return std::all_of(stamps_.begin(), stamps_.end(), [&](const Stamp& s) { return s.number >= least && s.number < most; });
  };
  auto compact = [](const Stamp& s) {
    const auto date =
        date_from(static_cast<int>(s.number / 10000), static_cast<int>(s.number / 100 % 100), static_cast<int>(s.number % 100));
    return date.ok();
  };
  if (within(100'000'000, 100'000'000'000)) {
    format.kind = StampFormat::Kind::unix_seconds;
  } else if (within(100'000'000'000, 100'000'000'000'000)) {
    format.kind = StampFormat::Kind::unix_milliseconds;
  } else if (within(1500'01'01, 2500'01'01) && std::all_of(stamps_.begin(), stamps_.end(), compact)) {
    format.kind = StampFormat::Kind::date;
    format.separator = '\0';
  }
}

int64_t StampReader::tick(const Stamp& stamp, const StampFormat& format, int64_t row) const {
  switch (format.kind) {
    case StampFormat::Kind::step:
      if (stamp.number > largest_step || stamp.number < -largest_step)
        refuse(row, fmt::format("is a step beyond {}; got {}", largest_step, stamp.number));
      return stamp.number;
    case StampFormat::Kind::unix_seconds: return stamp.number * ticks_per_second;
    case StampFormat::Kind::unix_milliseconds: return stamp.number * (ticks_per_second / 1000);
    default: break;
  }
  int year = stamp.year, month = stamp.first, day = stamp.second;
  if (format.order == StampFormat::Order::day_first) std::swap(month, day);
  if (format.separator == '\0' && format.kind == StampFormat::Kind::date) {
    year = static_cast<int>(stamp.number / 10000), month = static_cast<int>(stamp.number / 100 % 100);
    day = static_cast<int>(stamp.number % 100);
  }
  const auto date = date_from(year, month, day);
  if (!date.ok() || year < 1) refuse(row, fmt::format("is no day of the calendar; got year {}, month {}, day {}", year, month, day));
  return day_of_date(date) * ticks_per_day + stamp.clock - stamp.format.offset();
}

StampColumn StampReader::finish() {
  StampColumn out;
  if (stamps_.empty()) fail<InvalidArgument>("series", "{}: has no rows", where_);
  out.format = stamps_[0].format;
  if (out.format.kind == StampFormat::Kind::step)
    decide_numbers(out.format);
  else
    decide_order(out.format);
  out.ticks.reserve(stamps_.size());
  size_t last = 0;
  for (size_t row = 0; row < stamps_.size(); ++row) {
    out.ticks.push_back(tick(stamps_[row], out.format, static_cast<int64_t>(row)));
    if (out.ticks[row] > out.ticks[last]) last = row;
    const StampFormat& written = stamps_[row].format;
    if (written.clock != StampFormat::Clock::none) out.format.between = written.between;
    out.format.clock = std::max(out.format.clock, written.clock);
    out.format.fraction_digits = std::max(out.format.fraction_digits, written.fraction_digits);
  }
  out.format.zone = stamps_[last].format.zone;
  out.format.offset_minutes = stamps_[last].format.offset_minutes;
  // Every midnight (or noon, ...) of a place that has summer time: days are meant, some of which have 23 or 25 hours.
  const bool same_clock = std::all_of(stamps_.begin(), stamps_.end(), [&](const Stamp& s) { return s.clock == stamps_[0].clock; });
  for (size_t row = 0; same_clock && row < stamps_.size(); ++row) out.ticks[row] += stamps_[row].format.offset() - out.format.offset();
  return out;
}

void StampReader::refuse(int64_t row, const std::string& why) const {
  fail<InvalidArgument>("series", "{}, line {}: {}", where_, lines_[static_cast<size_t>(row)], why);
}

std::string StampFormat::text(int64_t tick) const {
  if (kind == Kind::step) return std::to_string(tick);
  if (kind == Kind::unix_seconds) return std::to_string(floor_divide(tick, ticks_per_second));
  if (kind == Kind::unix_milliseconds) return std::to_string(floor_divide(tick, ticks_per_second / 1000));
  const int64_t local = tick + offset();
  const int64_t days = floor_divide(local, ticks_per_day), moment = local - days * ticks_per_day;
  constexpr int64_t first_day = -719162, last_day = 2932896;  // of the years 1 and 9999
  if (days < first_day || days > last_day) fail<InvalidArgument>("series", "the forecast goes beyond the year 9999");
  const auto date = date_of_day(days);
  const int year = static_cast<int>(date.year());
  const unsigned month = static_cast<unsigned>(date.month()), day = static_cast<unsigned>(date.day());
  const std::string mark = separator == '\0' ? "" : std::string(1, separator);
  if (kind == Kind::quarter) return fmt::format("{:04}{}Q{}", year, mark, (month + 2) / 3);
  if (kind == Kind::month) return fmt::format("{:04}{}{:02}", year, mark, month);
  std::string out = order == Order::year_first  ? fmt::format("{:04}{}{:02}{}{:02}", year, mark, month, mark, day)
                    : order == Order::day_first ? fmt::format("{:02}{}{:02}{}{:04}", day, mark, month, mark, year)
                                                : fmt::format("{:02}{}{:02}{}{:04}", month, mark, day, mark, year);
  if (clock == Clock::none) return out;
  const int64_t seconds = moment / ticks_per_second;
  out += fmt::format("{}{:02}:{:02}", between, seconds / 3600, seconds / 60 % 60);
  if (clock >= Clock::seconds) out += fmt::format(":{:02}", seconds % 60);
  if (clock == Clock::fraction)
    out += "." + fmt::format("{:06}", moment % ticks_per_second).substr(0, static_cast<size_t>(fraction_digits));
  if (zone == Zone::utc) out += 'Z';
  if (zone == Zone::offset)
    out += fmt::format("{}{:02}:{:02}", offset_minutes < 0 ? '-' : '+', std::abs(offset_minutes) / 60, std::abs(offset_minutes) % 60);
  return out;
}

}  // namespace tutti
