#include "tutti/data/time_axis.h"

#include <algorithm>
#include <numeric>

#include "tutti/base/error.h"

namespace tutti {

namespace {

unsigned last_day_of(std::chrono::year_month month) {
  return static_cast<unsigned>(std::chrono::year_month_day_last(month.year(), std::chrono::month_day_last(month.month())).day());
}

// Of Monday to Friday.
unsigned last_weekday_of(std::chrono::year_month month) {
  const unsigned last = last_day_of(month);
  const int64_t weekday = weekday_of(day_of_date(month / std::chrono::day(last)));
  return last - static_cast<unsigned>(std::max<int64_t>(0, weekday - 4));
}

struct SplitTick {
  int64_t day, clock;
};
SplitTick split_tick(int64_t tick) {
  const int64_t day = floor_divide(tick, ticks_per_day);
  return {day, tick - day * ticks_per_day};
}

}  // namespace

TimeAxis::TimeAxis(StampFormat format, const std::vector<std::vector<int64_t>>& series) : format_(format) {
  if (std::none_of(series.begin(), series.end(), [](const auto& ticks) { return ticks.size() > 1; }))
    fail<InvalidArgument>("series", "two rows at least tell how far apart times are; got {} series of one row", series.size());
  if (!format_.is_calendar()) {
    are_years_ = std::all_of(series.begin(), series.end(), [](const auto& ticks) { return ticks.front() >= 1500 && ticks.back() < 2500; });
    find_count(series);
  } else if (format_.kind == StampKind::week || !try_months(series)) {
    unit_ = Unit::microsecond;
    find_count(series);
    if (count_ == ticks_per_day && try_weekdays(series)) find_count(series);
  }
}

bool TimeAxis::try_months(const std::vector<std::vector<int64_t>>& series) {
  bool all_last = true, all_last_weekdays = true, first = true;
  unsigned latest = 1;
  for (const auto& ticks : series)
    for (int64_t tick : ticks) {
      const auto [day, clock] = split_tick(tick + format_.offset());
      if (first) day_clock_ = clock;
      first = false;
      if (clock != day_clock_) return false;
      const auto date = date_of_day(day);
      const auto number = static_cast<unsigned>(date.day());
      latest = std::max(latest, number);
      all_last = all_last && number == last_day_of({date.year(), date.month()});
      all_last_weekdays = all_last_weekdays && number == last_weekday_of({date.year(), date.month()});
    }
  day_ = all_last ? 31 : latest;
  last_weekday_ = all_last_weekdays && !all_last;
  for (const auto& ticks : series)
    for (int64_t tick : ticks) {
      const auto date = date_of_day(split_tick(tick + format_.offset()).day);
      if (static_cast<unsigned>(date.day()) != day_in({date.year(), date.month()})) return false;
    }
  unit_ = Unit::month;
  find_count(series);
  return true;
}

unsigned TimeAxis::day_in(std::chrono::year_month month) const {
  return last_weekday_ ? last_weekday_of(month) : std::min(day_, last_day_of(month));
}

bool TimeAxis::try_weekdays(const std::vector<std::vector<int64_t>>& series) {
  size_t rows = 0, days_in_all = 0;
  for (const auto& ticks : series) {
    for (int64_t tick : ticks) {
      const auto [day, clock] = split_tick(tick + format_.offset());
      if (weekday_of(day) > 4) return false;
      day_clock_ = clock;
    }
    rows += ticks.size();
    days_in_all += static_cast<size_t>((ticks.back() - ticks.front()) / ticks_per_day) + 1;
  }
  if (rows < 5 || days_in_all == rows) return false;  // no weekend between them
  unit_ = Unit::weekday;
  return true;
}

void TimeAxis::find_count(const std::vector<std::vector<int64_t>>& series) {
  count_ = 0;
  for (const auto& ticks : series)
    for (size_t i = 1; i < ticks.size(); ++i) count_ = std::gcd(count_, ordinal(ticks[i]) - ordinal(ticks[i - 1]));
}

int64_t TimeAxis::ordinal(int64_t tick) const {
  if (unit_ == Unit::step || unit_ == Unit::microsecond) return tick;
  const int64_t day = split_tick(tick + format_.offset()).day;
  if (unit_ == Unit::weekday) return floor_divide(day + 3, 7) * 5 + weekday_of(day);
  const auto date = date_of_day(day);
  return static_cast<int>(date.year()) * int64_t{12} + static_cast<unsigned>(date.month()) - 1;
}

int64_t TimeAxis::tick(int64_t ordinal) const {
  if (unit_ == Unit::step || unit_ == Unit::microsecond) return ordinal;
  int64_t day = 0;
  if (unit_ == Unit::weekday) {
    const int64_t week = floor_divide(ordinal, 5);
    day = week * 7 - 3 + (ordinal - week * 5);
  } else {
    const int64_t year = floor_divide(ordinal, 12);
    if (year < 1 || year > 9999) fail<InvalidArgument>("series", "the forecast goes beyond the year 9999");
    const std::chrono::year_month month(std::chrono::year(static_cast<int>(year)),
                                        std::chrono::month(static_cast<unsigned>(ordinal - year * 12) + 1));
    day = day_of_date({month.year(), month.month(), std::chrono::day(day_in(month))});
  }
  return day * ticks_per_day + day_clock_ - format_.offset();
}

std::string TimeAxis::frequency() const {
  if (unit_ == Unit::step) return are_years_ && count_ == 1 ? "yearly" : fmt::format("steps of {}", count_);
  if (unit_ == Unit::weekday) return count_ == 1 ? "weekdays" : fmt::format("every {} weekdays", count_);
  if (unit_ == Unit::month) {
    if (count_ % 12 == 0) return count_ == 12 ? "yearly" : fmt::format("every {} years", count_ / 12);
    return count_ == 1 ? "monthly" : count_ == 3 ? "quarterly" : fmt::format("every {} months", count_);
  }
  struct Period {
    int64_t ticks;
    const char *once, *many;
  };
  constexpr Period periods[] = {{7 * ticks_per_day, "weekly", "weeks"},        {ticks_per_day, "daily", "days"},
                                {3600 * ticks_per_second, "hourly", "hours"},  {60 * ticks_per_second, "every minute", "minutes"},
                                {ticks_per_second, "every second", "seconds"}, {1000, "every millisecond", "milliseconds"},
                                {1, "every microsecond", "microseconds"}};
  const auto* found = std::find_if(std::begin(periods), std::end(periods), [&](const Period& p) { return count_ % p.ticks == 0; });
  return count_ == found->ticks ? found->once : fmt::format("every {} {}", count_ / found->ticks, found->many);
}

int64_t TimeAxis::season() const {
  if (unit_ == Unit::month) return count_ == 1 ? 12 : count_ == 3 ? 4 : 1;
  if (unit_ == Unit::weekday) return count_ == 1 ? 5 : 1;
  if (unit_ == Unit::microsecond) return count_ == ticks_per_day ? 7 : count_ == 3600 * ticks_per_second ? 24 : 1;
  return 1;
}

}  // namespace tutti
