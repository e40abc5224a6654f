#include "tutti/data/stamp_layout.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tutti/base/error.h"
#include "tutti/base/utf8.h"

namespace tutti {

std::span<const StampLayout> stamp_layouts() {
  using enum StampKind;
  static constexpr StampLayout layouts[] = {
      {"%Y-%m-%d", date},
      {"%Y/%m/%d", date},
      {"%Y.%m.%d", date},
      {"%d.%m.%Y", date},
      {"%d/%m/%Y", date, "%m/%d/%Y"},
      {"%m/%d/%Y", date, "%d/%m/%Y"},
      {"%d-%m-%Y", date, "%m-%d-%Y"},
      {"%m-%d-%Y", date, "%d-%m-%Y"},
      {"%Y%m%d", date},
      {"%d-%b-%Y", date},
      {"%d %b %Y", date},
      {"%d/%b/%Y", date},
      {"%d.%b.%Y", date},
      {"%d%b%Y", date},
      {"%b %d, %Y", date},
      {"%b %d %Y", date},
      {"%b-%d-%Y", date},
      {"%Y-%b-%d", date},
      {"%Y %b %d", date},
      {"%Y-%j", date},
      {"%Y-%m", month},
      {"%Y%m", month},
      {"%Y/%m", month},
      {"%Y.%m", month},
      {"%m-%Y", month},
      {"%m/%Y", month},
      {"%m.%Y", month},
      {"%YM%m", month},
      {"%Y-M%m", month},
      {"%b %Y", month},
      {"%b-%Y", month},
      {"%b/%Y", month},
      {"%b%Y", month},
      {"%Y %b", month},
      {"%Y-%b", month},
      {"%Y-Q%q", quarter},
      {"%Y/Q%q", quarter},
      {"%Y.Q%q", quarter},
      {"%YQ%q", quarter},
      {"%Y Q%q", quarter},
      {"Q%q %Y", quarter},
      {"Q%q-%Y", quarter},
      {"Q%q/%Y", quarter},
      {"%qQ%Y", quarter},
      {"%Y-W%V-%u", date},
      {"%YW%V%u", date},
      {"%Y-W%V", week},
      {"%YW%V", week},
      {"%Y W%V", week},
  };
  return layouts;
}

std::optional<int> take_digits(std::string_view& text, size_t least, size_t most, bool touches) {
  size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
  if (touches) count = std::min(count, most), least = most;
  if (count < least || count > most) return {};
  int value = 0;
  std::from_chars(text.data(), text.data() + count, value);
  text.remove_prefix(count);
  return value;
}

namespace {

constexpr std::array<std::string_view, 12> month_names = {"January", "February", "March",     "April",   "May",      "June",
                                                          "July",    "August",   "September", "October", "November", "December"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// Reads a field by a pattern from left to right.
class StampMatcher {
 public:
  StampMatcher(std::string_view pattern, std::string_view text) : pattern_(pattern), text_(text) {}

  std::optional<StampMatch> match() {
    for (size_t at = 0; at < pattern_.size(); ++at) {
      if (pattern_[at] != '%') {
        if (text_.empty() || upper(text_[0]) != pattern_[at]) return {};
        text_.remove_prefix(1);
        continue;
      }
      const bool touches = (at > 1 && pattern_[at - 2] == '%') || (at + 2 < pattern_.size() && pattern_[at + 2] == '%');
      if (!take(pattern_[++at], touches)) return {};
    }
    out_.rest = text_;
    return out_;
  }

 private:
  bool take(char what, bool touches) {
    StampDate& date = out_.date;
    switch (what) {
      case 'Y': return digits(4, 4, touches, date.year);
      case 'm': return digits(1, 2, touches, date.month);
      case 'd': return digits(1, 2, touches, date.day);
      case 'V': return digits(1, 2, touches, date.week) && date.week > 0;
      case 'j': return digits(3, 3, false, date.yearday) && date.yearday > 0;
      case 'u': return digits(1, 1, false, date.weekday) && date.weekday >= 1 && date.weekday <= 7;
      case 'q': {
        int quarter = 0;
        if (!digits(1, 1, false, quarter) || quarter < 1 || quarter > 4) return false;
        date.month = quarter * 3 - 2;
        return true;
      }
      default: return month_name();
    }
  }

  bool digits(size_t least, size_t most, bool touches, int& value) {
    const size_t before = text_.size();
    const auto taken = take_digits(text_, least, most, touches);
    if (!taken) return false;
    value = *taken;
    if (before - text_.size() < most) out_.style.unpadded = true;
    return true;
  }

  bool month_name() {
    const auto length = static_cast<size_t>(std::find_if_not(text_.begin(), text_.end(), is_letter) - text_.begin());
    const std::string_view word = text_.substr(0, length);
    const std::string lower = in_lower_case(word);
    const auto* found = std::find_if(month_names.begin(), month_names.end(), [&](std::string_view name) {
      const std::string whole = in_lower_case(name);
      return lower == whole || lower == whole.substr(0, 3) || (lower == "sept" && whole.starts_with(lower));
    });
    if (found == month_names.end()) return false;
    out_.date.month = static_cast<int>(found - month_names.begin()) + 1;
    StampStyle& style = out_.style;
    style.long_name = length == found->size() && length > 3;
    style.letters = upper(word[1]) == word[1]   ? StampStyle::Letters::upper
                    : upper(word[0]) == word[0] ? StampStyle::Letters::capital
                                                : StampStyle::Letters::lower;
    text_.remove_prefix(length);
    if (length < found->size() && text_.starts_with(". ")) {
      style.dot = true;
      text_.remove_prefix(1);
    }
    return true;
  }

  std::string_view pattern_, text_;
  StampMatch out_;
};

}  // namespace

std::optional<StampMatch> match_layout(const StampLayout& layout, std::string_view text) {
  return StampMatcher(layout.pattern, text).match();
}

std::string layout_text(const StampLayout& layout, const StampStyle& style, std::chrono::year_month_day date) {
  const int64_t day = day_of_date(date), weekday = weekday_of(day);
  const auto month = static_cast<unsigned>(date.month());
  const bool has_week = layout.pattern.find("%V") != layout.pattern.npos;
  // The year of an ISO week is that of its Thursday.
  const auto year = has_week ? date_of_day(day - weekday + 3).year() : date.year();
  auto number = [&](int64_t value) { return style.unpadded ? std::to_string(value) : fmt::format("{:02}", value); };
  std::string out;
  for (size_t at = 0; at < layout.pattern.size(); ++at) {
    if (layout.pattern[at] != '%') {
      out += layout.pattern[at];
      continue;
    }
    switch (layout.pattern[++at]) {
      case 'Y': out += fmt::format("{:04}", static_cast<int>(year)); break;
      case 'm': out += number(month); break;
      case 'd': out += number(static_cast<unsigned>(date.day())); break;
      case 'q': out += std::to_string((month + 2) / 3); break;
      case 'j': out += fmt::format("{:03}", day - day_of_date(year / 1 / 1) + 1); break;
      case 'u': out += std::to_string(weekday + 1); break;
      case 'V': out += number((day - weekday + 3 - day_of_date(year / 1 / 1)) / 7 + 1); break;
      default: {
        const std::string_view name = month_names[month - 1];
        std::string word(style.long_name ? name : name.substr(0, 3));
        if (style.dot && word.size() < name.size()) word += '.';
        if (style.letters == StampStyle::Letters::lower) word = in_lower_case(word);
        if (style.letters == StampStyle::Letters::upper) std::transform(word.begin(), word.end(), word.begin(), upper);
        out += word;
      }
    }
  }
  return out;
}

std::chrono::year_month_day StampDate::date() const {
  const std::chrono::year_month_day whole(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                          std::chrono::day(static_cast<unsigned>(day)));
  if (yearday > 0) {
    const auto found = date_of_day(day_of_date(std::chrono::year(year) / 1 / 1) + yearday - 1);
    return found.year() == std::chrono::year(year) ? found : std::chrono::year_month_day{};
  }
  if (week == 0) return whole;
  // The week of January 4 is the first.
  const int64_t fourth = day_of_date(std::chrono::year(year) / 1 / 4);
  const int64_t monday = fourth - weekday_of(fourth) + (week - 1) * int64_t{7};
  if (date_of_day(monday + 3).year() != std::chrono::year(year)) return {};
  return date_of_day(monday + weekday - 1);
}

std::chrono::year_month_day date_of_day(int64_t day) {
  return std::chrono::sys_days(std::chrono::days(static_cast<std::chrono::days::rep>(day)));
}

int64_t day_of_date(std::chrono::year_month_day date) { return std::chrono::sys_days(date).time_since_epoch().count(); }

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// 1970-01-01 was a Thursday.
int64_t weekday_of(int64_t day) { return day + 3 - floor_divide(day + 3, 7) * 7; }

}  // namespace tutti
