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

// 1,234.5: as many decimals as marks `step` apart need; k, M, G, T where the largest has six digits or more.
std::string axis_number(double value, double step, double largest) {
  if (value == 0) return "0";
  std::string out = value < 0 ? "\u2212" : "";
  if (largest >= 1e15 || largest < 1e-4) {
    out += fmt::format("{:.4g}", std::abs(value));
    if (const size_t plus = out.find('+'); plus != out.npos) out.erase(plus, 1);
    return out;
  }
  struct Unit {
    double size;
    const char* name;
  };
  constexpr Unit units[] = {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  const auto* unit =
      largest < 1e5 ? std::end(units) : std::find_if(std::begin(units), std::end(units), [&](const Unit& u) { return largest >= u.size; });
  const double size = unit == std::end(units) ? 1 : unit->size;
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step / size) - 1e-9)));
  const std::string digits = fmt::format("{:.{}f}", std::abs(value) / size, decimals);
  const size_t whole = std::min(digits.find('.'), digits.size());
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + (unit == std::end(units) ? "" : unit->name);
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
  std::string date_text = fmt::format("{} {}", month, static_cast<unsigned>(date.day()));
  if (period.unit == TickUnit::days) return new_year ? fmt::format("{}, {}", date_text, year) : date_text;
  const std::string clock = fmt::format("{:02}:{:02}", moment / 3600, moment / 60 % 60);
  if (before == nullptr && moment != 0) return fmt::format("{}, {}", date_text, clock);
  if (before == nullptr || floor_divide(*before, ticks_per_day) != day) return date_text;
  return period.count < 60 ? fmt::format("{}:{:02}", clock, moment % 60) : clock;
}

// Marks close together far from zero: what they are more than a round number that is said once.
void count_from_base(ValueAxis& axis, double step) {
  constexpr size_t longest = 9;  // bytes that have room
  const bool fits = std::all_of(axis.ticks.begin(), axis.ticks.end(), [](const Tick& tick) { return tick.label.size() <= longest; });
  const bool differ = std::adjacent_find(axis.ticks.begin(), axis.ticks.end(),
                                         [](const Tick& a, const Tick& b) { return a.label == b.label; }) == axis.ticks.end();
  if ((fits && differ) || axis.ticks.empty()) return;
  const double unit = std::pow(10, std::ceil(std::log10(axis.high - axis.low)));
  double base = std::ceil(axis.low / unit) * unit;
  if (base > axis.high) base -= unit;
  const double largest = std::max(std::abs(axis.low - base), std::abs(axis.high - base));
  for (Tick& tick : axis.ticks) {
    const double more = tick.at - base;
    const std::string number = axis_number(std::abs(more) < step * 1e-3 ? 0 : more, step, largest);
    tick.label = (more >= step * 1e-3 ? "+" : "") + number;
  }
  axis.base = std::abs(base) < 1e15 ? axis_number(base, unit, 1) : fmt::format("{:.16g}", base);
}

}  // namespace

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
  ValueAxis out{low, high, {}, {}};
  for (double tick = std::ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) {
    const double at = std::abs(tick) < step * 1e-6 ? 0 : tick;
    out.ticks.push_back({at, axis_number(at, step, std::max(std::abs(low), std::abs(high)))});
    if (out.ticks.size() > 2 * static_cast<size_t>(most_ticks)) break;  // steps below the precision of the values
  }
  count_from_base(out, step);
  return out;
}

std::vector<Tick> time_ticks(const SeriesTable& table, const Series& series, int64_t begin, int64_t end, int most_ticks) {
  const TimeAxis& axis = table.axis;
  std::vector<Tick> out;
  std::vector<int64_t> ticks;  // as written: local time
  for (int64_t step = begin; step < end; ++step) ticks.push_back(axis.tick(series.first + step * axis.count()) + axis.format().offset());
  if (!axis.format().is_calendar()) {
    const auto span = static_cast<double>(ticks.back() - ticks.front());
    const auto every = std::max<int64_t>(1, static_cast<int64_t>(nice_step(std::max(1.0, span / most_ticks))));
    for (size_t i = 0; i < ticks.size(); ++i)
      if (i == 0 ? ticks[0] % every == 0 : floor_divide(ticks[i], every) != floor_divide(ticks[i - 1], every))
        out.push_back({static_cast<double>(begin) + static_cast<double>(i), std::to_string(ticks[i])});
    return out;
  }
  const TickPeriod* chosen = nullptr;
  std::vector<size_t> marks;
  for (const TickPeriod& period : tick_periods()) {
    std::vector<size_t> begins;
    for (size_t i = 0; i < ticks.size() && begins.size() <= static_cast<size_t>(most_ticks); ++i)
      if (period.key(ticks[i]) != period.key(i == 0 ? ticks[0] - 1 : ticks[i - 1])) begins.push_back(i);
    if (begins.size() > static_cast<size_t>(most_ticks)) continue;
    if (chosen != nullptr && begins.size() < marks.size()) continue;
    chosen = &period;  // a longer one with as many marks says it in fewer words
    marks = std::move(begins);
  }
  for (size_t i = 0; i < marks.size(); ++i)
    out.push_back({static_cast<double>(begin) + static_cast<double>(marks[i]),
                   time_label(*chosen, ticks[marks[i]], i == 0 ? nullptr : &ticks[marks[i - 1]])});
  return out;
}

}  // namespace tutti
