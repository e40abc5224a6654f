// Times as CSV files write them: one format a column, found over all of its rows, in which later times can be written too.
//
// Read are the layouts of stamp_layout.h (01/31/2020 and 31/01/2020: the column decides; where no row does, it is refused), dates with a
// clock (T, a blank or a comma between, 24:00 for the end of a day, fractions to the microsecond, AM and PM, Z, UTC or an offset; or all in
// one number), Unix times in seconds to nanoseconds, and whole numbers, which are steps (or years).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/stamp_layout.h"

namespace tutti {

inline constexpr int64_t ticks_per_second = 1'000'000, ticks_per_day = 86'400 * ticks_per_second;

struct StampFormat {
  enum class Clock : uint8_t { none, hours, minutes, seconds, fraction };
  enum class Hours : uint8_t { any, padded, unpadded };  // 10:30, 09:30, 9:30
  enum class Zone : uint8_t { none, utc, offset };
  enum class Offset : uint8_t { hours, plain, colon };  // +01, +0100, +01:00
  StampKind kind = StampKind::step;
  const StampLayout* layout = nullptr;  // of all but numbers
  StampStyle style;
  Clock clock = Clock::none;
  Hours hours = Hours::any;
  Zone zone = Zone::none;
  Offset offset_style = Offset::colon;
  bool compact = false;            // 103015
  bool ends_at_24 = false;         // midnight is 24:00 of the day before
  std::string_view between = "T";  // of date and clock; empty: 20210131103015 is a number in the file
  std::string_view noon;           // what follows the clock after noon, "PM" or " pm"; empty: hours go to 24
  std::string_view zone_text;      // "Z" or " UTC"; before an offset "" or " "
  int fraction_digits = 0, offset_minutes = 0;
  int64_t unix_unit = 1;  // of Unix times: how many a second

  bool is_calendar() const { return kind != StampKind::step; }
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
  static std::optional<Stamp> parse(std::string_view text, const StampLayout* likely = nullptr);
  static std::optional<Stamp> parse_number(std::string_view text);
  static std::optional<Stamp> parse_date(std::string_view text, const StampLayout& layout);
  void decide_order(StampFormat& format) const;
  void decide_numbers(StampFormat& format) const;
  int64_t tick(const Stamp& stamp, const StampFormat& format, int64_t row) const;
  [[noreturn]] void refuse(int64_t row, const std::string& why) const;

  // One field as it was written.
  struct Stamp {
    StampFormat format;
    int64_t number = 0;  // of a step
    StampDate date;
    int64_t clock = 0;  // ticks since midnight; of numbers their fraction
  };
  std::string where_;
  std::vector<Stamp> stamps_;
  std::vector<int64_t> lines_;
};

}  // namespace tutti
