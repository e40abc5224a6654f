// The ways in which files write a day, a month, a quarter or a week: rows of a table, each read and written by one pattern in the words of
// strftime. What only a whole column can tell (01/02/2020) is left to StampReader.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tutti {

enum class StampKind : uint8_t { step, unix_time, week, quarter, month, date };

// %Y 2021, %m 01, %d 28, %b Jan or January, %q a quarter's number, %V an ISO week, %u its day, %j a day of the year; all else as it stands.
struct StampLayout {
  std::string_view pattern;
  StampKind kind;
  std::string_view other_way = {};  // of day and month: the pattern that the same text may have
};
std::span<const StampLayout> stamp_layouts();

// How one field has written what the pattern leaves open.
struct StampStyle {
  enum class Letters : uint8_t { capital, upper, lower };
  Letters letters = Letters::capital;  // of a month's name
  bool long_name = false;              // January
  bool dot = false;                    // Jan. 28, 2020
  bool unpadded = false;               // 2/1/2020
};

struct StampDate {
  int year = 0, month = 1, day = 1;
  int week = 0, weekday = 1;                 // where the pattern has a week
  int yearday = 0;                           // where it has a day of the year
  std::chrono::year_month_day date() const;  // not ok() where the calendar has no such day
};

struct StampMatch {
  StampDate date;
  StampStyle style;
  std::string_view rest;  // behind it
};
// Months and days are any numbers yet.
std::optional<StampMatch> match_layout(const StampLayout& layout, std::string_view text);
std::string layout_text(const StampLayout& layout, const StampStyle& style, std::chrono::year_month_day date);

// Takes the digits that `text` begins with, from `least` to `most`; where numbers touch, as in 20210128, each has all of its digits.
std::optional<int> take_digits(std::string_view& text, size_t least, size_t most, bool touches = false);

// The calendar date of a day since 1970-01-01, and back.
std::chrono::year_month_day date_of_day(int64_t day);
int64_t day_of_date(std::chrono::year_month_day date);
// Rounds down, also below zero.
int64_t floor_divide(int64_t a, int64_t b);
// Monday is 0.
int64_t weekday_of(int64_t day);

}  // namespace tutti
