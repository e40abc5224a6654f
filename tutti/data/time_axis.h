// Regular time: how far apart the rows of a series stand, in the calendar's own terms, so that the times after its end come out right.
#pragma once

#include <span>

#include "tutti/data/stamp.h"

namespace tutti {

// Every time has an ordinal: its microseconds, weekday, month or step, counted from some beginning. Rows of a series are `count()` apart.
class TimeAxis {
 public:
  // `series` holds the ticks of each, ascending and each once. Calendar months are tried first (one day of the month, its end or its last
  // weekday; one time of day), then days without weekends, then the largest step that fits all rows. Throws InvalidArgument when no series
  // has two rows.
  TimeAxis(StampFormat format, const std::vector<std::vector<int64_t>>& series);

  int64_t ordinal(int64_t tick) const;
  int64_t tick(int64_t ordinal) const;
  int64_t count() const { return count_; }
  std::string text(int64_t ordinal) const { return format_.text(tick(ordinal)); }
  const StampFormat& format() const { return format_; }
  // "monthly", "every 15 minutes", "steps of 2".
  std::string frequency() const;
  // How many rows until the pattern comes again: 12 for months, 4 for quarters, 7 for days, 5 for weekdays, 24 for hours, else 1.
  int64_t season() const;

 private:
  enum class Unit { step, microsecond, weekday, month };
  bool try_months(const std::vector<std::vector<int64_t>>& series);
  unsigned day_in(std::chrono::year_month month) const;
  bool try_weekdays(const std::vector<std::vector<int64_t>>& series);
  void find_count(const std::vector<std::vector<int64_t>>& series);  // the largest that divides every difference of ordinals

  StampFormat format_;
  Unit unit_ = Unit::step;
  int64_t count_ = 0;
  unsigned day_ = 1;           // of months; 31 is the last one
  bool last_weekday_ = false;  // of months the last day that is no Saturday or Sunday, as markets have it
  int64_t day_clock_ = 0;      // ticks since midnight, of months and weekdays
  bool are_years_ = false;
};

}  // namespace tutti
