#include "tutti/run/plot_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tutti {

namespace {

// The least of 1, 2, 5, 10, 20, ... (or 0.5, 0.2, ...) that is at least so large.
double nice_step(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// A calendar's unit: times of the same period have the same key.
enum class TickUnit : uint8_t { seconds, days, months };
struct TickPeriod {
  TickUnit unit;
  int64_t count;
  int64_t key(int64_t tick) const {
    const int64_t day = floor_divide(tick, ticks_per_day);
    if (unit == TickUnit::seconds) return floor_divide(tick, count * ticks_per_second);
    if (unit == TickUnit::days) return floor_divide(day + 3, count);  // weeks begin on Mondays
    const auto date = date_of_day(day);
    return floor_divide(static_cast<int>(date.year()) * int64_t{12} + static_cast<unsigned>(date.month()) - 1, count);
  }
};

// From the shortest to the longest.
std::span<const TickPeriod> tick_periods() {
  using enum TickUnit;
  static constexpr int64_t minute = 60, hour = 3600, year = 12;
  static constexpr TickPeriod all[] = {{seconds, 1},
                                       {seconds, 5},
                                       {seconds, 15},
                                       {seconds, 30},
                                       {seconds, minute},
                                       {seconds, 5 * minute},
                                       {seconds, 15 * minute},
                                       {seconds, 30 * minute},
                                       {seconds, hour},
                                       {seconds, 3 * hour},
                                       {seconds, 6 * hour},
                                       {seconds, 12 * hour},
                                       {days, 1},
                                       {days, 2},
                                       {days, 4},
                                       {days, 7},
                                       {days, 14},
                                       {months, 1},
                                       {months, 3},
                                       {months, 6},
                                       {months, year},
                                       {months, 2 * year},
                                       {months, 5 * year},
                                       {months, 10 * year},
                                       {months, 20 * year},
                                       {months, 50 * year},
                                       {months, 100 * year},
                                       {months, 500 * year},
                                       {months, 1000 * year}};
  return all;
}

// What is new since the mark before it.
std::string time_label(const TickPeriod& period, int64_t tick, const int64_t* before) {
  static constexpr std::array names = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const int64_t day = floor_divide(tick, ticks_per_day), moment = (tick - day * ticks_per_day) / ticks_per_second;
  const auto date = date_of_day(day);
  const int year = static_cast<int>(date.year());
  const char* month = names.at(static_cast<unsigned>(date.month()) - 1);
  if (period.unit == TickUnit::months && period.count % 12 == 0) return std::to_string(year);
  const bool new_year = before == nullptr || date_of_day(floor_divide(*before, ticks_per_day)).year() != date.year();
  if (period.unit == TickUnit::months) return new_year ? fmt::format("{} {}", month, year) : month;
  const std::string date_text = fmt::format("{} {}", month, static_cast<unsigned>(date.day()));
  if (period.unit == TickUnit::days) return new_year ? fmt::format("{}, {}", date_text, year) : date_text;
  if (before == nullptr || floor_divide(*before, ticks_per_day) != day) return date_text;
  const std::string clock = fmt::format("{:02}:{:02}", moment / 3600, moment / 60 % 60);
  return period.count < 60 ? fmt::format("{}:{:02}", clock, moment % 60) : clock;
}

}  // namespace

std::string axis_number(double value, double step) {
  if (value == 0) return "0";
  const double size = std::max(std::abs(value), step);
  if (size >= 1e12 || size < 1e-4) return fmt::format("{:.4g}", value);
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  std::string out = fmt::format("{:.{}f}", std::abs(value), decimals);
  const size_t whole = std::min(out.find('.'), out.size());
  for (auto at = static_cast<int64_t>(whole) - 3; at > 0; at -= 3) out.insert(static_cast<size_t>(at), ",");
  return (value < 0 ? "\u2212" : "") + out;
}

ValueAxis value_axis(const std::vector<double>& values, int most_ticks) {
  double low = INFINITY, high = -INFINITY;
  for (double value : values)
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  if (low > high) low = 0, high = 1;
  const double room = (high - low) * 0.04;
  if (low >= 0 && low < 0.2 * high)
    low = 0;
  else
    low -= room;
  high += room;
  if (!(high - low > std::max(std::abs(low), std::abs(high)) * 1e-12)) {
    const double around = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= around, high += around;
  }
  if (!std::isfinite(high - low)) low /= 4, high /= 4;
  const double step = nice_step((high - low) / most_ticks);
  ValueAxis out{low, high, {}};
  for (double tick = std::ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) {
    const double at = std::abs(tick) < step * 1e-6 ? 0 : tick;
    out.ticks.push_back({at, axis_number(at, step)});
    if (out.ticks.size() > 2 * static_cast<size_t>(most_ticks)) break;  // steps below the precision of the values
  }
  return out;
}

std::vector<Tick> time_ticks(const SeriesTable& table, const Series& series, int64_t begin, int64_t end, int most_ticks) {
  const TimeAxis& axis = table.axis;
  std::vector<Tick> out;
  std::vector<int64_t> ticks;  // as written: local time
  for (int64_t step = begin; step < end; ++step)
    ticks.push_back(axis.tick(series.first + step * axis.count()) +
                    axis.format().offset_minutes * 60 * ticks_per_second * (axis.format().is_calendar() ? 1 : 0));
  if (!axis.format().is_calendar()) {
    const auto span = static_cast<double>(ticks.back() - ticks.front());
    const auto every = std::max<int64_t>(1, static_cast<int64_t>(nice_step(std::max(1.0, span / most_ticks))));
    for (size_t i = 0; i < ticks.size(); ++i)
      if (i == 0 ? ticks[0] % every == 0 : floor_divide(ticks[i], every) != floor_divide(ticks[i - 1], every))
        out.push_back({static_cast<double>(begin) + static_cast<double>(i), std::to_string(ticks[i])});
    return out;
  }
  for (const TickPeriod& period : tick_periods()) {
    std::vector<size_t> begins;
    for (size_t i = 0; i < ticks.size() && begins.size() <= static_cast<size_t>(most_ticks); ++i)
      if (period.key(ticks[i]) != period.key(i == 0 ? ticks[0] - 1 : ticks[i - 1])) begins.push_back(i);
    if (begins.size() > static_cast<size_t>(most_ticks)) continue;
    for (size_t i = 0; i < begins.size(); ++i)
      out.push_back({static_cast<double>(begin) + static_cast<double>(begins[i]),
                     time_label(period, ticks[begins[i]], i == 0 ? nullptr : &ticks[begins[i - 1]])});
    return out;
  }
  return out;
}

}  // namespace tutti
