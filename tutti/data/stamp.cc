#include "tutti/data/stamp.h"

#include <algorithm>
#include <charconv>

#include "tutti/base/error.h"
#include "tutti/base/utf8.h"

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
  std::optional<int> take_digits(size_t least, size_t most) { return tutti::take_digits(text_, least, most); }
  // Whatever follows.
  std::optional<int> take_two() { return tutti::take_digits(text_, 2, 2, true); }
  bool at_digit() const { return !text_.empty() && text_[0] >= '0' && text_[0] <= '9'; }
  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  // Letters in either case.
  bool take_word(std::string_view word) {
    if (in_lower_case(text_.substr(0, word.size())) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  size_t size() const { return text_.size(); }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

// ".25" as ticks, with how many digits it has. False where it is finer than a tick or has no digits.
bool take_fraction(StampText& text, int& digits, int64_t& ticks) {
  int64_t unit = ticks_per_second;
  size_t read = 0;
  for (char digit; (digit = text.take_any("0123456789")) != '\0'; ++read) {
    unit /= 10;
    if (unit == 0 && digit != '0') return false;
    ticks += (digit - '0') * unit;
    if (unit > 0) ++digits;
  }
  return read > 0;
}

// "PM" with what stands before it. True where there is none.
bool take_noon(StampText& text, StampFormat& format, int& hours) {
  const StampText before = text;
  const bool blank = text.take(' ');
  const bool capital = text.rest().starts_with('A') || text.rest().starts_with('P');
  const bool morning = text.take_word("am");
  if (!morning && !text.take_word("pm")) {
    text = before;
    return hours <= 24;  // 24:00, the end of a day
  }
  if (hours < 1 || hours > 12) return false;
  format.noon = blank ? (capital ? " PM" : " pm") : (capital ? "PM" : "pm");
  hours = hours % 12 + (morning ? 0 : 12);
  return true;
}

bool take_zone(StampText& text, StampFormat& format) {
  const bool blank = text.take(' ');
  if (text.take_word("z")) {
    format.zone = StampFormat::Zone::utc;
    format.zone_text = "Z";
  } else if (text.take_word("utc")) {
    format.zone = StampFormat::Zone::utc;
    format.zone_text = blank ? " UTC" : "UTC";
  } else if (text.take_word("gmt")) {
    format.zone = StampFormat::Zone::utc;
    format.zone_text = blank ? " GMT" : "GMT";
  } else if (char sign = text.take_any("+-"); sign != '\0') {
    std::optional<int> hours, minutes = 0;
    if (text.size() == 4) {
      auto both = text.take_digits(4, 4);
      if (both) hours = *both / 100, minutes = *both % 100;
      format.offset_style = StampFormat::Offset::plain;
    } else {
      hours = text.take_digits(2, 2);
      format.offset_style = text.take(':') ? StampFormat::Offset::colon : StampFormat::Offset::hours;
      if (format.offset_style == StampFormat::Offset::colon) minutes = text.take_digits(2, 2);
    }
    if (!hours || !minutes || *hours > 18 || *minutes > 59) return false;
    format.zone = StampFormat::Zone::offset;
    format.zone_text = blank ? " " : "";
    format.offset_minutes = (sign == '-' ? -1 : 1) * (*hours * 60 + *minutes);
  }
  return text.done();
}

// "T10:30:15.25+01:00", or nothing at all. False where it is neither.
bool take_clock(StampText text, StampFormat& format, int64_t& clock) {
  if (text.done()) return true;
  if (text.take_any("Tt") == '\0') format.between = text.take(' ') ? " " : text.take(", ") ? ", " : "";
  if (format.between.empty()) return false;
  // 10:30:15, or 103015 as a whole, or 10.
  format.compact = !text.rest().substr(0, 3).ends_with(':') && !text.rest().substr(0, 2).ends_with(':');
  if (text.rest().starts_with('0')) format.hours = StampFormat::Hours::padded;
  const size_t before = text.size();
  auto hours = format.compact ? text.take_two() : text.take_digits(1, 2);
  const bool one_digit = format.compact && !hours;  // 9AM
  if (one_digit) hours = text.take_digits(1, 1);
  if (!hours || !(format.compact || text.take(':'))) return false;
  if (one_digit || (!format.compact && before - text.size() == 2)) format.hours = StampFormat::Hours::unpadded;
  if (format.compact && !text.at_digit()) {
    format.compact = false;
    format.clock = StampFormat::Clock::hours;
    if (!take_noon(text, format, *hours) || (one_digit && format.noon.empty())) return false;
    clock += *hours * (3600 * ticks_per_second);
    return take_zone(text, format);
  }
  auto minutes = text.take_two();
  if (!minutes || *minutes > 59) return false;
  format.clock = StampFormat::Clock::minutes;
  if (format.compact ? text.at_digit() : text.take(':')) {
    auto seconds = text.take_two();
    if (!seconds || *seconds > 59) return false;
    clock += *seconds * ticks_per_second;
    format.clock = StampFormat::Clock::seconds;
    if (text.take_any(".,") != '\0') {
      format.clock = StampFormat::Clock::fraction;
      if (!take_fraction(text, format.fraction_digits, clock)) return false;
    }
  }
  if (text.at_digit()) return false;
  if (!take_noon(text, format, *hours)) return false;
  clock += (*hours * 60 + *minutes) * (60 * ticks_per_second);
  return clock <= ticks_per_day && take_zone(text, format);
}

const StampLayout* layout_of(std::string_view pattern) {
  const auto layouts = stamp_layouts();
  return &*std::find_if(layouts.begin(), layouts.end(), [&](const StampLayout& layout) { return layout.pattern == pattern; });
}

// A number without the two digits a part of the clock that follow its date, and those as hours, minutes and seconds.
struct SplitNumber {
  int64_t date, hours = 0, minutes = 0, seconds = 0;
};
SplitNumber split_number(int64_t number, StampFormat::Clock clock) {
  SplitNumber out{number};
  const auto take_two = [&](int64_t& part) { part = out.date % 100, out.date /= 100; };
  if (clock >= StampFormat::Clock::seconds) take_two(out.seconds);
  if (clock >= StampFormat::Clock::minutes) take_two(out.minutes);
  if (clock >= StampFormat::Clock::hours) take_two(out.hours);
  return out;
}

// 20200131, or without days 202001.
StampDate date_of_number(int64_t number, bool days) {
  const auto month = static_cast<int>(days ? number / 100 : number);
  return {month / 100, month % 100, days ? static_cast<int>(number % 100) : 1};
}

}  // namespace

// "7", "-5", "1580466615.25"; "2020.01" is a month.
std::optional<StampReader::Stamp> StampReader::parse_number(std::string_view text) {
  Stamp out;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, out.number);
  if (error != std::errc{}) return {};
  if (stop == end) return out;
  StampText rest(text.substr(static_cast<size_t>(stop - text.data())));
  const bool is_month = text.size() == 7 && rest.size() == 3;
  if (is_month || out.number < 0 || !rest.take('.') || !take_fraction(rest, out.format.fraction_digits, out.clock) || !rest.done())
    return {};
  return out;
}

std::optional<StampReader::Stamp> StampReader::parse_date(std::string_view text, const StampLayout& layout) {
  const auto match = match_layout(layout, text);
  if (!match) return {};
  Stamp out;
  out.format.kind = layout.kind;
  out.format.layout = &layout;
  out.format.style = match->style;
  out.date = match->date;
  if (layout.kind != StampKind::date && !match->rest.empty()) return {};
  if (!take_clock(StampText(match->rest), out.format, out.clock)) return {};
  return out;
}

// Everything but what only the whole column can tell: which of two numbers is the month, and what plain numbers mean.
std::optional<StampReader::Stamp> StampReader::parse(std::string_view text, const StampLayout* likely) {
  if (likely)
    if (auto found = parse_date(text, *likely)) return found;
  if (auto found = parse_number(text)) return found;
  for (const StampLayout& layout : stamp_layouts())
    if (auto found = parse_date(text, layout)) return found;
  return {};
}

bool StampReader::is_date(std::string_view text) {
  auto found = parse(text);
  return found && found->format.kind != StampKind::step;
}

void StampReader::add(std::string_view text, int64_t line) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  auto found = parse(text, stamps_.empty() ? nullptr : stamps_[0].format.layout);
  lines_.push_back(line);
  if (!found)
    refuse(
        static_cast<int64_t>(lines_.size()) - 1,
        fmt::format("is not a time that is read; got '{}'; hint: 2020-01-31, 2020-01-31T10:30:00, 31 Jan 2020, 2020-01, 2020-Q1, 2020-W05 "
                    "(years have four digits), Unix times or whole numbers",
                    escape(text, 40)));
  if (!stamps_.empty()) {
    const StampFormat &first = stamps_[0].format, &now = found->format;
    if (now.kind != first.kind || now.layout != first.layout)
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
  if (format.layout->other_way.empty()) return;
  int64_t day_above = -1, month_above = -1;
  for (size_t row = 0; row < stamps_.size(); ++row) {
    if (stamps_[row].date.day > 12 && day_above < 0) day_above = static_cast<int64_t>(row);
    if (stamps_[row].date.month > 12 && month_above < 0) month_above = static_cast<int64_t>(row);
  }
  const StampDate& date = stamps_[0].date;
  if (day_above >= 0 && month_above >= 0)
    refuse(month_above, fmt::format("has the month first, line {} the day", lines_[static_cast<size_t>(day_above)]));
  if (day_above < 0 && month_above < 0)
    refuse(0, fmt::format("may mean {:02}{}{:02} as day and month or as month and day, and no row tells; hint: write {:04}-{:02}-{:02}",
                          date.day, format.layout->pattern[2], date.month, date.year, date.month, date.day));
  if (month_above < 0) return;
  format.layout = layout_of(format.layout->other_way);
}

void StampReader::decide_numbers(StampFormat& format) const {
  auto within = [&](int64_t least, int64_t most) {
    return std::all_of(stamps_.begin(), stamps_.end(), [&](const Stamp& s) { return s.number >= least && s.number < most; });
  };
  // 20200131, 202001
  auto are_dates = [&](bool days) {
    return within(days ? 1500'01'01 : 1500'01, days ? 2500'01'01 : 2500'01) &&
           std::all_of(stamps_.begin(), stamps_.end(),
                       [&](const Stamp& s) { return s.format.fraction_digits == 0 && date_of_number(s.number, days).date().ok(); });
  };
  // 2020013110, 202001311030, 20200131103015. Unix times would be those of 2030 to 2036, or of 1976, or much later, and all days and hours.
  for (const auto clock : {StampFormat::Clock::hours, StampFormat::Clock::minutes, StampFormat::Clock::seconds}) {
    const bool are_clocks = std::all_of(stamps_.begin(), stamps_.end(), [&](const Stamp& s) {
      const auto [date, hours, minutes, seconds] = split_number(s.number, clock);
      return date >= 1900'01'01 && date < 2101'01'01 && hours < 24 && minutes < 60 && seconds < 60 && s.format.fraction_digits == 0 &&
             date_of_number(date, true).date().ok();
    });
    if (!are_clocks) continue;
    format.layout = layout_of("%Y%m%d");
    format.kind = format.layout->kind;
    format.clock = clock;
    format.compact = true;
    format.between = "";
    return;
  }
  constexpr int64_t least_seconds = 100'000'000, span = 1000;  // from 1973 on
  int64_t least = least_seconds;
  for (int64_t unit : {1, 1'000, 1'000'000, 1'000'000'000}) {
    const int64_t most = unit == 1'000'000'000 ? std::numeric_limits<int64_t>::max() : least * span;
    if (within(least, most)) {
      format.kind = StampKind::unix_time;
      format.unix_unit = unit;
      return;
    }
    least = most;
  }
  for (bool days : {true, false}) {
    if (!are_dates(days)) continue;
    format.layout = layout_of(days ? "%Y%m%d" : "%Y%m");
    format.kind = format.layout->kind;
    return;
  }
}

int64_t StampReader::tick(const Stamp& stamp, const StampFormat& format, int64_t row) const {
  if (format.kind == StampKind::step) {
    if (stamp.number > largest_step || stamp.number < -largest_step)
      refuse(row, fmt::format("is a step beyond {}; got {}", largest_step, stamp.number));
    if (stamp.clock != 0) refuse(row, fmt::format("is a step that is no whole number; got {} and a fraction", stamp.number));
    return stamp.number;
  }
  if (format.kind == StampKind::unix_time) {
    if (format.unix_unit > ticks_per_second) {
      const int64_t finer = format.unix_unit / ticks_per_second;
      if (stamp.number % finer != 0) refuse(row, fmt::format("is finer than a microsecond; got {}", stamp.number));
      return stamp.number / finer;
    }
    return stamp.number * (ticks_per_second / format.unix_unit) + stamp.clock / format.unix_unit;
  }
  StampDate date = stamp.date;
  int64_t clock = stamp.clock;
  if (stamp.format.kind == StampKind::step) {
    const auto [number, hours, minutes, seconds] = split_number(stamp.number, format.clock);
    date = date_of_number(number, format.kind == StampKind::date);
    clock = ((hours * 60 + minutes) * 60 + seconds) * ticks_per_second;
  }
  if (format.layout != stamps_[0].format.layout && stamps_[0].format.layout) std::swap(date.month, date.day);
  const auto found = date.date();
  if (!found.ok() || date.year < 1) {
    if (date.week > 0) refuse(row, fmt::format("is no week of the calendar; got year {}, week {}", date.year, date.week));
    if (date.yearday > 0) refuse(row, fmt::format("is no day of the calendar; got year {}, day {}", date.year, date.yearday));
    refuse(row, fmt::format("is no day of the calendar; got year {}, month {}, day {}", date.year, date.month, date.day));
  }
  return day_of_date(found) * ticks_per_day + clock - stamp.format.offset();
}

StampColumn StampReader::finish() {
  StampColumn out;
  if (stamps_.empty()) fail<InvalidArgument>("series", "{}: has no rows", where_);
  out.format = stamps_[0].format;
  if (out.format.kind == StampKind::step)
    decide_numbers(out.format);
  else
    decide_order(out.format);
  out.ticks.reserve(stamps_.size());
  size_t last = 0;
  bool has_midnight = false;
  for (size_t row = 0; row < stamps_.size(); ++row) {
    out.ticks.push_back(tick(stamps_[row], out.format, static_cast<int64_t>(row)));
    if (out.ticks[row] > out.ticks[last]) last = row;
    const StampFormat& written = stamps_[row].format;
    has_midnight = has_midnight || stamps_[row].clock == 0;
    out.format.ends_at_24 = out.format.ends_at_24 || stamps_[row].clock == ticks_per_day;
    if (written.clock != StampFormat::Clock::none) out.format.between = written.between;
    if (written.clock > StampFormat::Clock::hours) out.format.compact = written.compact;
    out.format.clock = std::max(out.format.clock, written.clock);
    out.format.fraction_digits = std::max(out.format.fraction_digits, written.fraction_digits);
    if (!written.noon.empty()) out.format.noon = written.noon;
    out.format.hours = std::max(out.format.hours, written.hours);
    out.format.style.unpadded |= written.style.unpadded;
    out.format.style.long_name |= written.style.long_name;
    out.format.style.dot |= written.style.dot;
  }
  if (out.format.hours == StampFormat::Hours::any && out.format.style.unpadded) out.format.hours = StampFormat::Hours::unpadded;
  out.format.ends_at_24 = out.format.ends_at_24 && !has_midnight;
  const StampFormat& newest = stamps_[last].format;
  out.format.zone = newest.zone;
  out.format.zone_text = newest.zone_text;
  out.format.offset_style = newest.offset_style;
  out.format.offset_minutes = newest.offset_minutes;
  // Every midnight (or noon, ...) of a place that has summer time: days are meant, some of which have 23 or 25 hours.
  const bool same_clock = std::all_of(stamps_.begin(), stamps_.end(), [&](const Stamp& s) { return s.clock == stamps_[0].clock; });
  for (size_t row = 0; same_clock && row < stamps_.size(); ++row) out.ticks[row] += stamps_[row].format.offset() - out.format.offset();
  return out;
}

void StampReader::refuse(int64_t row, const std::string& why) const {
  fail<InvalidArgument>("series", "{}, line {}: {}", where_, lines_[static_cast<size_t>(row)], why);
}

std::string StampFormat::text(int64_t tick) const {
  const std::string no_fraction = fraction_digits == 0 ? "" : "." + std::string(static_cast<size_t>(fraction_digits), '0');
  if (kind == StampKind::step) return std::to_string(tick) + no_fraction;
  if (kind == StampKind::unix_time) {
    if (unix_unit > ticks_per_second) return std::to_string(tick * (unix_unit / ticks_per_second));
    const int64_t one = ticks_per_second / unix_unit, whole = floor_divide(tick, one);
    std::string out = std::to_string(whole);
    if (fraction_digits > 0)
      out += "." + fmt::format("{:06}", (tick - whole * one) * unix_unit).substr(0, static_cast<size_t>(fraction_digits));
    return out;
  }
  const int64_t local = tick + offset();
  int64_t days = floor_divide(local, ticks_per_day), moment = local - days * ticks_per_day;
  if (moment == 0 && ends_at_24) --days, moment = ticks_per_day;
  constexpr int64_t first_day = -719162, last_day = 2932896;  // of the years 1 and 9999
  if (days < first_day || days > last_day) fail<InvalidArgument>("series", "the forecast goes beyond the year 9999");
  std::string out = layout_text(*layout, style, date_of_day(days));
  if (clock == Clock::none) return out;
  const int64_t seconds = moment / ticks_per_second, hour = seconds / 3600;
  const int64_t shown = noon.empty() ? hour : (hour + 11) % 12 + 1;
  const std::string_view colon = compact ? "" : ":";
  out += fmt::format("{}{:0{}}", between, shown, hours == Hours::unpadded ? 1 : 2);
  if (clock >= Clock::minutes) out += fmt::format("{}{:02}", colon, seconds / 60 % 60);
  if (clock >= Clock::seconds) out += fmt::format("{}{:02}", colon, seconds % 60);
  if (clock == Clock::fraction)
    out += "." + fmt::format("{:06}", moment % ticks_per_second).substr(0, static_cast<size_t>(fraction_digits));
  if (!noon.empty()) {
    std::string half(noon);
    if (hour < 12) half[half.size() - 2] = half.back() == 'M' ? 'A' : 'a';
    out += half;
  }
  if (zone == Zone::none) return out;
  out += zone_text;
  if (zone == Zone::utc) return out;
  out += fmt::format("{}{:02}", offset_minutes < 0 ? '-' : '+', std::abs(offset_minutes) / 60);
  if (offset_style == Offset::hours && offset_minutes % 60 == 0) return out;
  return out + fmt::format("{}{:02}", offset_style == Offset::plain ? "" : ":", std::abs(offset_minutes) % 60);
}

}  // namespace tutti
