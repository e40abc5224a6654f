// Times as CSV files write them: one format a column, found over all of its rows, in which later times can be written too.
//
// Read are ISO 8601 dates and date-times (T or a blank between, fractions to the microsecond, Z or an offset), 2020/01/31, 31.01.2020,
// 20200131, 01/31/2020 and 31/01/2020 (the column decides; where no row does, it is refused), months (2020-01), quarters (2020-Q1), Unix
// seconds and milliseconds, and whole numbers, which are steps (or years).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

inline constexpr int64_t ticks_per_second = 1'000'000, ticks_per_day = 86'400 * ticks_per_second;

struct StampFormat {
  enum class Kind : uint8_t { step, unix_seconds, unix_milliseconds, quarter, month, date };
  enum class Order : uint8_t { year_first, day_first, month_first };
  enum class Clock : uint8_t { none, minutes, seconds, fraction };
  enum class Zone : uint8_t { none, utc, offset };
  Kind kind = Kind::step;
  Order order = Order::year_first;
  Clock clock = Clock::none;
  Zone zone = Zone::none;
  char separator = '-', between = 'T';  // of dates ('\0': none, 20200131); of date and clock
  int fraction_digits = 0, offset_minutes = 0;

  bool is_calendar() const { return kind != Kind::step; }
  int64_t offset() const { return offset_minutes * (60 * ticks_per_second); }  // what local time is ahead
  // A tick as it is written in this format. Throws InvalidArgument beyond the year 9999.
  std::string text(int64_t tick) const;
};

// Ticks are microseconds since 1970 (UTC where the column says so, else local time); for steps they are the numbers themselves.
struct StampColumn {
  StampFormat format;
  std::vector<int64_t> ticks;
};

class StampReader {
 public:
  explicit StampReader(std::string where) : where_(std::move(where)) {}  // begins its messages: "x.csv: column 'month'"
  void add(std::string_view text, int64_t line);                         // the next row
  StampColumn finish();

  // Whether it is a date for certain: no plain number.
  static bool is_date(std::string_view text);

 private:
  struct Stamp;
  static std::optional<Stamp> parse(std::string_view text);
  void decide_order(StampFormat& format) const;
  void decide_numbers(StampFormat& format) const;
  int64_t tick(const Stamp& stamp, const StampFormat& format, int64_t row) const;
  [[noreturn]] void refuse(int64_t row, const std::string& why) const;

  // One field as it was written.
  struct Stamp {
    StampFormat format;
    int64_t number = 0;                   // of a step
    int year = 0, first = 0, second = 0;  // month and day, or day and month
    int64_t clock = 0;                    // ticks since midnight
  };
  std::string where_;
  std::vector<Stamp> stamps_;
  std::vector<int64_t> lines_;
};

// The calendar date of a day since 1970-01-01, and back.
std::chrono::year_month_day date_of_day(int64_t day);
int64_t day_of_date(std::chrono::year_month_day date);
// Rounds down, also below zero.
int64_t floor_divide(int64_t a, int64_t b);

}  // namespace tutti
